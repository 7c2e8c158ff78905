// The analyst's page: enter with a token, then surveys, questions to ask and answers.
import * as api from "./api.js";
import { fillForm, orderOf } from "./asking.js";
import { showJobs } from "./answers.js";
import { showCounts, showSurveys } from "./surveys.js";

const COUNTS = 3000, BUSY = 1000, IDLE = 5000;
const at = (id) => document.getElementById(id);
let surveys = [], jobs = [], timers = [];

/** Do it now and again, after the milliseconds that it returns; a hidden page rests. */
function every(work) {
  const slot = timers.push(0) - 1;
  const again = async () => {
    const wait = document.hidden ? IDLE : await work().catch(trouble);
    if (api.token()) timers[slot] = setTimeout(again, wait ?? IDLE);
  };
  return again();
}

function trouble(error) {
  at("trouble").textContent = error.message;
  if (error.status === 401 || error.status === 403) leave();
}

function leave() {
  api.forget();
  timers.forEach(clearTimeout);
  timers = [];
  for (const id of ["surveys", "jobs", "result"]) at(id).replaceChildren();
  at("inside").hidden = at("leave").hidden = true;
  at("enter").hidden = false;
  at("token").focus();
}

async function counted() {
  await Promise.all(surveys.map(async ({ name }) => showCounts(name, await api.json(`/v1/surveys/${name}/counts`))));
  at("trouble").textContent = "";
  return COUNTS;
}

async function looked() {
  jobs = await api.json("/v1/jobs");
  const running = jobs.some(({ state }) => state === "running");
  at("start").disabled = running;
  showJobs(at("jobs"), at("result"), jobs, looked);
  fillForm(surveys, jobs);
  return running ? BUSY : IDLE;
}

/** Show everything, if the token is an analyst's. */
async function inside() {
  await api.json("/v1/jobs");
  const listed = await api.json("/v1/surveys");
  surveys = await Promise.all(listed.map(({ name, version }) => api.json(`/v1/surveys/${name}/${version}`)));
  showSurveys(at("surveys"), surveys);
  fillForm(surveys, []);
  at("enter").hidden = true;
  at("inside").hidden = at("leave").hidden = false;
  every(counted);
  every(looked);
}

at("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("trouble").textContent = "";
  api.remember(at("token").value.trim());
  at("token").value = "";
  await inside().catch(trouble);
});
at("leave").addEventListener("click", leave);
at("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("refused").textContent = "";
  try {
    await api.json("/v1/jobs", { method: "POST", body: orderOf(surveys) });
    timers.forEach(clearTimeout);
    timers = [];
    every(counted);
    every(looked);
  } catch (error) {
    at("refused").textContent = error.message;
  }
});
for (const id of ["survey", "verb", "questions"])
  at(id).addEventListener("change", () => fillForm(surveys, jobs));

if (api.token()) inside().catch(trouble);
else at("enter").hidden = false;
