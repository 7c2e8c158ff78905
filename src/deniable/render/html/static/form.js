// The form for a new analysis: survey, kind of analysis, questions, candidates, subgroup, days.
import { html } from "./charts.js";

const at = (id) => document.getElementById(id);
const typed = new Map(); // candidates that were typed, by survey and question

const chosen = (surveys) => surveys[at("survey").selectedIndex];
const ticked = () => [...at("questions").querySelectorAll("input:checked")].map(({ value }) => value);
const canDiscover = ({ protocol }) => protocol.name !== "single";
const title = ({ name, version }) => `${name}, version ${version}`;

/** Show the fields that fit the choices. A field that somebody is typing into is never replaced. */
export function fillForm(surveys, jobs) {
  if (at("survey").length !== surveys.length)
    at("survey").replaceChildren(...surveys.map((s) => html("option", { textContent: title(s) })));
  const survey = chosen(surveys);
  if (!survey) return;
  fillQuestions(survey, at("verb").value);
  fillSubgroup(survey, at("verb").value);
  fillCandidates(survey, at("verb").value, jobs);
  at("accept-field").hidden = at("verb").value !== "discover";
}

function fillQuestions(survey, verb) {
  const place = at("questions"), now = `${title(survey)} ${verb}`;
  if (place.dataset.now === now) return;
  const asked = survey.questions.filter((q) => verb !== "discover" || canDiscover(q));
  const before = ticked().filter((name) => asked.some((q) => q.name === name));
  place.dataset.now = now;
  const type = verb === "associate" ? "checkbox" : "radio";
  const labels = asked.map(({ name }, i) => {
    const checked = before.length ? before.includes(name) : i === 0;
    const input = html("input", { type, name: "question", value: name, checked });
    return html("label", {}, input, name);
  });
  if (!labels.length) labels.push(html("p", { textContent: "No question of this survey has a dictionary section, which discover needs." }));
  place.replaceChildren(place.querySelector("legend"), ...labels);
}

/** Offer the other questions as conditions of a subgroup, and the answers to the chosen one. */
function fillSubgroup(survey, verb) {
  const others = survey.questions.filter(({ name }) => !ticked().includes(name)), place = at("condition");
  at("subgroup").hidden = verb !== "decode" || !others.length;
  const now = JSON.stringify([title(survey), others.map((q) => q.name)]), before = place.value;
  if (place.dataset.now !== now) {
    place.dataset.now = now;
    place.replaceChildren(html("option", { value: "", textContent: "anything: all clients" }),
      ...others.map(({ name }) => html("option", { value: name, textContent: name })));
    if (others.some(({ name }) => name === before)) place.value = before;
  }
  fillAnswer(survey, others.find(({ name }) => name === place.value && !at("subgroup").hidden));
}

function fillAnswer(survey, question) {
  const place = at("answer-field"), now = question ? `${title(survey)} ${question.name}` : "";
  place.hidden = !question;
  if (place.dataset.now === now) return;
  place.dataset.now = now;
  if (!question) return place.replaceChildren();
  const options = question.kind === "boolean" ? ["yes", "no"] : question.protocol.mechanism?.options;
  const input = options ? html("select", {}, ...options.map((text) => html("option", { value: text, textContent: text })))
    : html("input", { required: true, autocomplete: "off", spellcheck: false });
  place.replaceChildren(`Answer to ${question.name}`, Object.assign(input, { id: "answer" }));
}

function fillCandidates(survey, verb, jobs) {
  const names = verb === "discover" ? [] : ticked();
  const strings = survey.questions.filter(({ name, kind }) => kind === "string" && names.includes(name));
  const found = jobs.filter((job) => job.verb === "discover" && job.state === "done" && !job.by && job.survey === survey.name);
  const place = at("candidates"), now = JSON.stringify([title(survey), strings.map((q) => q.name), found.map((job) => job.id)]);
  if (place.dataset.now === now) return;
  place.dataset.now = now;
  place.replaceChildren(...strings.map((question) => fields(survey, question, found)));
}

const foundBy = ({ since, until, accept }) =>
  ["discovered", since && `from ${since}`, until && `to ${until}`, accept && `matching ${accept}`].filter(Boolean).join(" ");

function fields(survey, { name }, found) {
  const key = `${title(survey)} ${name}`, texts = html("textarea", { rows: 4, value: typed.get(key) ?? "", spellcheck: false });
  texts.dataset.question = name;
  texts.addEventListener("input", () => typed.set(key, texts.value));
  const mine = found.filter((job) => job.questions[0] === name);
  const from = html("select", {}, html("option", { value: "", textContent: "the strings that are typed" }),
    ...mine.map((job) => html("option", { value: job.id, textContent: foundBy(job) })));
  from.dataset.question = name;
  // Candidates are needed unless those of a discovery are used.
  const need = () => { texts.required = !from.value; texts.disabled = Boolean(from.value); };
  from.addEventListener("change", need);
  need();
  const row = html("div", { className: "row" },
    html("label", { className: "field" }, `Candidate strings for ${name}, one per line`, texts));
  if (mine.length) row.append(html("label", { className: "field" }, "Source of candidates", from));
  return row;
}

/** The analysis that the form describes, as the body of a request. */
export function requestOf(surveys) {
  const { name, version } = chosen(surveys), verb = at("verb").value, candidates = {};
  for (const field of at("candidates").querySelectorAll("textarea"))
    candidates[field.dataset.question] = field.value.split("\n").map((line) => line.replace(/\r$/, "")).filter(Boolean);
  for (const field of at("candidates").querySelectorAll("select"))
    if (field.value) candidates[field.dataset.question] = { job: field.value };
  const optional = { since: at("since").value, until: at("until").value, by: at("by").value };
  if (verb === "discover") optional.accept = at("accept").value;
  if (verb === "decode" && at("answer")) optional.where = { [at("condition").value]: at("answer").value };
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value));
  return { verb, survey: name, version, questions: ticked(), candidates, ...given };
}
