// Jobs: their progress, how to cancel and remove them, and their results.
import * as api from "./api.js";
import { html } from "./charts.js";
import { nodes } from "./sections.js";

const STATES = { done: "Done", failed: "Failed", cancelled: "Cancelled" };
const cards = new Map();
let watched = null; // the job that was running last: its result is shown as soon as it is done

const title = ({ verb, questions }) => `${verb} ${questions.join(" and ")}`;
const button = (name, work) => {
  const made = html("button", { type: "button", textContent: name });
  made.addEventListener("click", () => work().catch((error) => { made.after(html("p", { className: "wrong", textContent: error.message })); }));
  return made;
};

/** Show one card per job. A card is replaced only when the state of its job changes, to keep the focus. */
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
  if (!same) place.replaceChildren(...(wanted.length ? wanted : [html("p", { className: "soft", textContent: "No analyses yet." })]));
}

function card(job, result, refresh) {
  const made = html("article", { className: "card" }, html("h3", { textContent: title(job) }));
  made.dataset.state = job.state;
  const status = html("p", { className: job.state === "failed" ? "wrong" : "soft" }), actions = html("div", { className: "row" });
  const where = `/v1/jobs/${job.id}`, gone = async () => { await api.remove(where); await refresh(); };
  const about = `survey ${job.survey}, version ${job.version}`;
  status.setAttribute("role", "status");
  made.append(status);
  if (job.state === "running") {
    const bar = html("progress");
    bar.setAttribute("aria-label", `Progress of ${title(job)}`);
    made.append(bar, actions);
    actions.append(button("Cancel", gone));
    return { made, state: job.state, status, bar, about };
  }
  status.textContent = [`${STATES[job.state]} after ${job.seconds.toFixed(1)} s`, about, job.detail].filter(Boolean).join(" · ");
  if (job.state === "done") {
    actions.append(button("Show", () => show(job, result)));
    for (const [name, form] of [["JSON", "json"], ["CSV", "csv"], ["Report", "html"]])
      actions.append(button(name, () => api.download(`${where}/result.${form}`, `${job.verb}-${job.questions.join("-")}.${form}`)));
  }
  actions.append(button("Remove", gone));
  made.append(actions);
  return { made, state: job.state };
}

function follow({ status, bar, about }, { stage, done, seconds }) {
  if (done === null) bar.removeAttribute("value");
  else bar.value = done;
  status.textContent = `${stage}, ${seconds.toFixed(0)} s · ${about}`;
}

async function show(job, result) {
  result.replaceChildren(...nodes(await api.text(`/v1/jobs/${job.id}/result`)));
  globalThis.enliven(result); // report.js: sortable tables, charts that name their numbers
  result.focus({ preventScroll: true });
  result.scrollIntoView({ block: "start" });
}
