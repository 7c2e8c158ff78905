// The analyst page: sign in with a token; then surveys, a form for new analyses, and their results.
import * as api from "./api.js";
import { fillForm, requestOf } from "./form.js";
import { forgetJobs, showJobs, showLinked } from "./jobs.js";
import { showCounts, showSurveys } from "./surveys.js";

// Milliseconds between two requests: for counts, and for jobs while one is running and while none is.
const COUNTS = 3000, BUSY = 1000, IDLE = 5000;
const at = (id) => document.getElementById(id);
let surveys = [], jobs = [], timers = [];

/** Call `work` now, and again after the milliseconds that it returns; pause while the page is hidden. */
function every(work) {
  const slot = timers.push(0) - 1;
  const again = async () => {
    const wait = document.hidden ? IDLE : await work().catch(showError);
    if (api.token()) timers[slot] = setTimeout(again, wait ?? IDLE);
  };
  return again();
}

function showError(error) {
  at("trouble").textContent = error.message;
  if (error.status === 401 || error.status === 403) signOut();
}

function signOut() {
  api.forget();
  timers.forEach(clearTimeout);
  timers = [];
  forgetJobs();
  for (const id of ["surveys", "jobs", "result"]) at(id).replaceChildren();
  at("inside").hidden = at("leave").hidden = true;
  at("enter").hidden = false;
  at("token").focus();
}

async function updateCounts() {
  await Promise.all(surveys.map(async ({ name }) => showCounts(name, await api.json(`/v1/surveys/${name}/counts`))));
  at("trouble").textContent = "";
  return COUNTS;
}

async function updateJobs() {
  jobs = await api.json("/v1/jobs");
  const running = jobs.some(({ state }) => state === "running");
  at("start").disabled = running;
  at("wait").textContent = running ? "Another analysis is running: wait for it, or cancel it." : "";
  showJobs(at("jobs"), at("result"), jobs, updateJobs);
  fillForm(surveys, jobs);
  return running ? BUSY : IDLE;
}

/** Show everything, if the collector accepts the token. */
async function signIn() {
  await api.json("/v1/jobs");
  const listed = await api.json("/v1/surveys");
  surveys = await Promise.all(listed.map(({ name, version }) => api.json(`/v1/surveys/${name}/${version}`)));
  showSurveys(at("surveys"), surveys);
  fillForm(surveys, []);
  at("enter").hidden = true;
  at("inside").hidden = at("leave").hidden = false;
  every(updateCounts);
  every(updateJobs);
}

at("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("trouble").textContent = "";
  api.remember(at("token").value.trim());
  at("token").value = "";
  await signIn().catch(showError);
});
at("leave").addEventListener("click", signOut);
at("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("refused").textContent = "";
  try {
    await api.json("/v1/jobs", { method: "POST", body: requestOf(surveys) });
    timers.forEach(clearTimeout);
    timers = [];
    every(updateCounts);
    every(updateJobs);
  } catch (error) {
    at("refused").textContent = error.message;
  }
});
addEventListener("hashchange", () => { if (api.token()) showLinked(at("result"), jobs); });
for (const id of ["survey", "verb", "questions", "condition"])
  at(id).addEventListener("change", () => fillForm(surveys, jobs));
for (const kind of ["input", "change"])
  at("ask").addEventListener(kind, () => { at("refused").textContent = ""; });

if (api.token()) signIn().catch(showError);
else at("enter").hidden = false;
