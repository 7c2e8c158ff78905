// The surveys that are collected: their questions, privacy loss, and number of reports.
import { dayBars, grouped, html } from "./charts.js";

const cards = new Map();

/** ε of a question, in words. Published losses are in billionths of a nat; with repeated collection
 * there is also a bound on the total. */
function epsilon({ loss }, collect) {
  const sum = (which) => (loss.reduce((total, slot) => total + slot[which], 0) / 1e9).toFixed(2);
  return collect === "once" ? `ε = ${sum("once")} per report` : `ε = ${sum("once")} per report, ${sum("forever")} in total`;
}

function card(survey) {
  const { name, version, description, owner, expires, collect, budget, questions, format } = survey;
  const testing = format.includes("testing") && "Test data: this survey was published for testing. Real clients do not answer it.";
  const count = html("p", { className: "count", textContent: "…" }), days = html("div");
  count.setAttribute("aria-live", "off");
  cards.set(`${name} ${version}`, { count, days, before: "" });
  const rows = questions.flatMap((q) => [
    html("dt", { textContent: `${q.name} (${q.kind})` }),
    html("dd", { textContent: [q.description, epsilon(q, collect)].filter(Boolean).join(" · ") }),
  ]);
  return html("article", { className: "card" },
    html("h3", { textContent: `${name}, version ${version}` }),
    ...(testing ? [html("p", { className: "wrong", textContent: testing })] : []),
    html("p", { textContent: description }),
    html("p", { className: "soft", textContent: `${owner} · collected ${collect} · until ${expires} · ε per client at most ${(budget / 1e9).toFixed(2)}` }),
    html("dl", {}, ...rows), count, days);
}

/** Show one card per survey. */
export const showSurveys = (place, surveys) => place.replaceChildren(...surveys.map(card));

/** Update the numbers of reports. */
export function showCounts(name, versions) {
  for (const { version, days, waiting, minimum_batch: smallest, warning } of versions) {
    const card = cards.get(`${name} ${version}`), now = JSON.stringify([days, waiting]);
    if (!card || card.before === now) continue;
    const total = Object.values(days).reduce((sum, count) => sum + count, 0);
    card.before = now;
    card.count.textContent = total === 1 ? "1 report" : `${grouped(total)} reports`;
    const notes = [
      ...(waiting ? [html("p", { className: "soft", textContent: `${grouped(waiting)} more wait: reports become visible in shuffled batches of at least ${grouped(smallest)}.` })] : []),
      ...(warning ? [html("p", { className: "wrong", textContent: `Batches are ${warning}.` })] : []),
    ];
    const nothing = waiting ? [] : [html("p", { className: "soft", textContent: `Nothing has arrived yet. Clients send reports to ${location.origin}/v1/reports.` })];
    card.days.replaceChildren(...(total ? [dayBars(days)] : nothing), ...notes);
  }
}
