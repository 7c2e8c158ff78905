// The surveys that are collected: what they ask, what an answer costs, how many reports there are.
import { dayBars, grouped, html } from "./charts.js";

const cards = new Map();

/** ε of a question, in words. Published losses are in billionths of a nat; what is collected
 * repeatedly has a limit for ever. */
function epsilon({ loss }, collect) {
  const sum = (which) => (loss.reduce((total, slot) => total + slot[which], 0) / 1e9).toFixed(2);
  return collect === "once" ? `ε = ${sum("once")}, once` : `ε = ${sum("once")} a report, ${sum("forever")} for ever`;
}

function card(survey) {
  const { name, version, description, owner, expires, collect, budget, questions } = survey;
  const count = html("p", { className: "count", textContent: "…" }), days = html("div");
  count.setAttribute("aria-live", "off");
  cards.set(`${name} ${version}`, { count, days, before: "" });
  const rows = questions.flatMap((q) => [
    html("dt", { textContent: `${q.name} (${q.kind})` }),
    html("dd", { textContent: [q.description, epsilon(q, collect)].filter(Boolean).join(" · ") }),
  ]);
  return html("article", { className: "card" },
    html("h3", { textContent: `${name}, version ${version}` }),
    html("p", { textContent: description }),
    html("p", { className: "soft", textContent: `${owner} · collected ${collect} · until ${expires} · nobody spends more than ε = ${(budget / 1e9).toFixed(2)}` }),
    html("dl", {}, ...rows), count, days);
}

/** One card a survey. */
export const showSurveys = (place, surveys) => place.replaceChildren(...surveys.map(card));

/** Reports as they arrive. */
export function showCounts(name, versions) {
  for (const { version, days } of versions) {
    const found = cards.get(`${name} ${version}`), now = JSON.stringify(days);
    if (!found || found.before === now) continue;
    const total = Object.values(days).reduce((sum, count) => sum + count, 0);
    found.before = now;
    found.count.textContent = total === 1 ? "1 report" : `${grouped(total)} reports`;
    found.days.replaceChildren(...(total ? [dayBars(days)] : []));
  }
}
