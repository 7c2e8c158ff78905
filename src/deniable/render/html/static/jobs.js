// Jobs: their progress, how to cancel and remove them, and their results. A result has an address: #job-ID.
import * as api from "./api.js";
import { html } from "./charts.js";
import { nodes } from "./sections.js";

const STATES = { done: "Done", failed: "Failed", cancelled: "Cancelled" };
const FORMATS = { json: "JSON", csv: "CSV", html: "HTML", svg: "SVG" };
const FORGOTTEN = "This result is no longer kept: the collector keeps the last 20 analyses until it stops. Start the analysis again.";
const cards = new Map();
let watched = null; // the job that was running last: its result is shown as soon as it is done
let shown = null; // the job in the place for results, with its state

const address = ({ id }) => `#job-${id}`;
const days = ({ since, until }) => (since || until) && `${since ? `from ${since}` : ""} ${until ? `to ${until}` : ""}`.trim();
const subgroup = ({ where = {} }) =>
  Object.entries(where).map(([name, answers]) => `${name} = ${answers.join(" or ")}`).join(" and ");
const title = (job) => [job.verb, job.questions.join(" and "), subgroup(job) && `where ${subgroup(job)}`,
  job.accept && `matching ${job.accept}`, job.by && `by ${job.by}`, days(job)].filter(Boolean).join(" ");
const about = ({ survey, version }) => `survey ${survey}, version ${version}`;
const note = (text, kind = "soft") => html("p", { className: kind, textContent: text });
const button = (name, work) => {
  const made = html("button", { type: "button", textContent: name });
  made.addEventListener("click", () => work().catch((error) => { made.after(note(error.message, "wrong")); }));
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
      if (job.state === "done") location.hash = address(job);
    }
  }
  const wanted = jobs.map((job) => cards.get(job.id).made);
  const same = wanted.length && wanted.length === place.children.length && wanted.every((made, i) => place.children[i] === made);
  if (!same) place.replaceChildren(...(wanted.length ? wanted : [note("No analyses yet. Choose what to analyse above, and press Start.")]));
  showLinked(result, jobs);
}

/** Show the result that the address of the page names, unless it is shown already. */
export function showLinked(result, jobs) {
  const id = /^#job-([0-9a-f]+)$/.exec(location.hash)?.[1], job = jobs.find((each) => each.id === id);
  const now = id ? `${id} ${job?.state}` : "none";
  if (now === shown) return;
  shown = now;
  if (!id) return result.replaceChildren(note("Results are shown here."));
  if (!job) return result.replaceChildren(note(FORGOTTEN));
  if (job.state === "running") return result.replaceChildren(note("The analysis is still running. Its result will be shown here."));
  if (job.state !== "done") return result.replaceChildren(note(job.detail ? api.sentence(job.detail) : "This analysis was cancelled, so it has no result."));
  show(job, result).catch((error) => result.replaceChildren(note(error.message, "wrong")));
}

/** Forget everything that was shown. */
export function forgetJobs() {
  cards.clear();
  shown = watched = null;
}

function card(job, result, refresh) {
  const made = html("article", { className: "card" }, html("h3", { textContent: title(job) }));
  made.dataset.state = job.state;
  const status = note("", job.state === "failed" ? "wrong" : "soft"), actions = html("div", { className: "row" });
  const where = `/v1/jobs/${job.id}`, gone = async () => { await api.remove(where); await refresh(); };
  status.setAttribute("role", "status");
  made.append(status);
  if (job.state === "running") {
    const bar = html("progress");
    bar.setAttribute("aria-label", `Progress of ${title(job)}`);
    made.append(bar, actions);
    actions.append(button("Cancel", gone));
    return { made, state: job.state, status, bar };
  }
  status.textContent = `${STATES[job.state]} after ${job.seconds.toFixed(1)} s · ${about(job)}`;
  if (job.detail) status.after(note(api.sentence(job.detail)));
  if (job.state === "done") {
    const link = html("a", { className: "button", href: address(job), textContent: "Show" });
    link.addEventListener("click", () => { if (location.hash === address(job)) reveal(result); });
    actions.append(link);
    for (const form of job.formats)
      actions.append(button(`Download ${FORMATS[form]}`, () => api.download(`${where}/result.${form}`)));
  }
  actions.append(button("Remove", gone));
  made.append(actions);
  return { made, state: job.state };
}

function follow({ status, bar }, job) {
  if (job.done === null) bar.removeAttribute("value");
  else bar.value = job.done;
  status.textContent = `${job.stage[0].toUpperCase()}${job.stage.slice(1)}, ${job.seconds.toFixed(0)} s · ${about(job)}`;
}

async function show(job, result) {
  const made = nodes(await api.text(`/v1/jobs/${job.id}/result`));
  const link = html("a", { href: address(job), textContent: location.href });
  result.replaceChildren(...made, html("p", { className: "soft" }, "Link to this result, for analysts: ", link));
  globalThis.enliven(result); // report.js: sortable tables, charts that name their numbers
  reveal(result);
}

function reveal(result) {
  result.focus({ preventScroll: true });
  result.scrollIntoView({ block: "start" });
}
