// Asks the survey in survey.json, shows the report before it leaves the page, and sends it.
// Run a collector (deniable serve examples/site/survey.json --store reports.db, port 8080), serve the
// repository (python -m http.server 8000), and open http://127.0.0.1:8000/examples/site/.
import { openClient, openSender, readSurvey } from "../../clients/js/deniable.js";

// What this page was reviewed with; `deniable check survey.json` prints it.
const DIGEST = "f70b95e6da6e9d36e8c208c814768e65";

const find = (id) => document.getElementById(id);
const say = (text) => (find("status").textContent = text);

/** A field for one question; the first choice is not to answer. */
function field({ name, kind, description, protocol }) {
  const label = document.createElement("label");
  const input = document.createElement(kind === "string" ? "input" : "select");
  const options = kind === "boolean" ? ["yes", "no"] : (protocol.mechanism?.options ?? []);
  if (kind !== "string") input.append(...["", ...options].map((text) => new Option(text)));
  input.name = name;
  label.append(`${description || name} `, input);
  const line = document.createElement("p");
  line.append(label);
  return line;
}

/** What was entered, by question; nothing is no answer. */
function entered(survey) {
  const values = {};
  for (const { name, kind } of survey.questions) {
    const text = document.getElementsByName(name)[0].value;
    if (text) values[name] = kind === "boolean" ? text === "yes" : text;
  }
  return values;
}

const published = await (await fetch("survey.json")).arrayBuffer();
const survey = await readSurvey(published, DIGEST);
const client = await openClient(survey);
const epsilon = survey.questions.flatMap((q) => q.loss).reduce((sum, { once }) => sum + once, 0) / 1e9;
find("about").textContent =
  `${survey.description}. Asked by ${survey.owner} until ${survey.expires}. Noise is added before anything ` +
  `leaves this page: the report changes the odds of any guess about your answers by a factor of at most ` +
  `${Math.exp(epsilon).toFixed(1)} (ε = ${epsilon.toFixed(2)}).`;
find("questions").append(...survey.questions.map(field));

let report;
document.querySelector("form").onsubmit = async (event) => {
  event.preventDefault();
  try {
    report = await client.answer(entered(survey));
  } catch (error) {
    say(error.name === "BudgetExceeded" ? "You have answered this survey already." : error.message);
    return;
  }
  find("report").textContent = Array.from(report, (b) => b.toString(16).padStart(2, "0")).join(" ");
  say(`These ${report.length} bytes are all that would be sent.`);
  find("show").disabled = true;
  find("send").disabled = false;
};
find("send").onclick = async () => {
  find("send").disabled = true;
  const { sent, refused } = await openSender(find("collector").value).send(report);
  say(sent ? "Sent. Thank you." : refused.length ? `Refused with status ${refused}.` : "Not yet sent: it will be tried again.");
};
