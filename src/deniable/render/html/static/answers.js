// Jobs: how far they are, cancelling them, and what came out of them.
import * as api from "./api.js";
import { html } from "./charts.js";
import { nodes } from "./sections.js";

const STATES = { done: "done", failed: "failed", cancelled: "cancelled" };
const cards = new Map();
let watched = null; // the job that was running last: its result is shown when it is there

const title = ({ verb, questions }) => `${verb} ${questions.join(" and ")}`;
const button = (name, work) => {
  const made = html("button", { type: "button", textContent: name });
  made.addEventListener("click", () => work().catch((error) => { made.after(html("p", { className: "wrong", textContent: error.message })); }));
  return made;
};

/** One card a job; a card is made anew only when its state changes, so that focus stays. */
export function showJobs(place, result, jobs, refresh) {
  for (const id of cards.keys()) if (!jobs.some((job) => job.id === id)) cards.delete(id);
  for (const job of jobs) {
    const known = cards.get(job.id);
    if (known?.state !== job.state) cards.set(job.id, card(job, result, refresh));
    if (job.state === "running") {
      watched = job.id;
      follow(cards.get(job.id), job);
    } else if (watched === job.id) {
      watched = null;
      if (job.state === "done") show(job, result).catch(() => {});
    }
  }
  const wanted = jobs.map((job) => cards.get(job.id).made);
  const same = wanted.length === place.children.length && wanted.every((made, i) => place.children[i] === made);
  if (!same) place.replaceChildren(...(wanted.length ? wanted : [html("p", { className: "soft", textContent: "Nothing was asked yet." })]));
}

function card(job, result, refresh) {
  const made = html("article", { className: "card" }, html("h3", { textContent: title(job) }));
  made.dataset.state = job.state;
  const said = html("p", { className: job.state === "failed" ? "wrong" : "soft" }), actions = html("div", { className: "row" });
  const where = `/v1/jobs/${job.id}`, gone = async () => { await api.remove(where); await refresh(); };
  const about = `survey ${job.survey}, version ${job.version}`;
  said.setAttribute("role", "status");
  made.append(said);
  if (job.state === "running") {
    const bar = html("progress");
    bar.setAttribute("aria-label", `progress of ${title(job)}`);
    made.append(bar, actions);
    actions.append(button("Cancel", gone));
    return { made, state: job.state, said, bar, about };
  }
  said.textContent = [`${STATES[job.state]} after ${job.seconds.toFixed(1)} s`, about, job.detail].filter(Boolean).join(" · ");
  if (job.state === "done") {
    actions.append(button("Show", () => show(job, result)));
    for (const [name, form] of [["JSON", "json"], ["CSV", "csv"], ["Report", "html"]])
      actions.append(button(name, () => api.download(`${where}/result.${form}`, `${job.verb}-${job.questions.join("-")}.${form}`)));
  }
  actions.append(button("Remove", gone));
  made.append(actions);
  return { made, state: job.state };
}

function follow({ said, bar, about }, { stage, done, seconds }) {
  if (done === null) bar.removeAttribute("value");
  else bar.value = done;
  said.textContent = `${stage}, ${seconds.toFixed(0)} s · ${about}`;
}

async function show(job, result) {
  result.replaceChildren(...nodes(await api.text(`/v1/jobs/${job.id}/result`)));
  globalThis.enliven(result); // report.js: tables sort, charts say their numbers
  result.focus({ preventScroll: true });
  result.scrollIntoView({ block: "start" });
}
