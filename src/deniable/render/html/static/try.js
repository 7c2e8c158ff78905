// The browser client's own steps, shown one by one. Nothing is sent and nothing is kept.
import { bitBars, bitRows, grouped, html, percent, sharpening } from "./charts.js";
import { grow } from "./crowd.js";
import { steps } from "./deniable.js";

const ONE = 2 ** 32, BITS = 32, HASHES = 2, COHORTS = 64;
const SIZES = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
const NOISE = [
  { name: "as in the paper", f: 1 / 2, p: 1 / 2, q: 3 / 4 },
  { name: "more", f: 3 / 4, p: 1 / 2, q: 3 / 4 },
  { name: "less", f: 1 / 4, p: 1 / 4, q: 3 / 4 },
];
const at = (id) => document.getElementById(id);
const random = (size) => crypto.getRandomValues(new Uint8Array(size));
const unpacked = (bytes) => Array.from({ length: BITS }, (_, i) => (bytes[i >> 3] >> (i & 7)) % 2 === 1);

let person, shown, counts, reports;

/** Both kinds of noise together: how often a bit that is not set, or is, is sent as 1. */
function together({ f, p, q }) {
  return { p: f / 2 * q + (1 - f / 2) * p, q: f / 2 * p + (1 - f / 2) * q };
}

/** ε in nats: of one report, and of all reports together. */
function losses(noise) {
  const { p, q } = together(noise), odds = (1 - noise.f / 2) / (noise.f / 2);
  return { once: HASHES * Math.log(q * (1 - p) / (p * (1 - q))), forever: 2 * HASHES * Math.log(odds) };
}

async function newPerson() {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", random(32), algorithm, false, ["sign"]);
  return { key, cohort: random(1)[0] % COHORTS };
}

/** The value's bits, and those bits after this person's permanent noise for them. */
async function encode(value, { f }) {
  const { key, cohort } = person, bloom = new Uint8Array(BITS / 8), flip = f / 2 * ONE;
  const header = await steps.headerOf("try-it", "value", "full");
  const token = new TextEncoder().encode(value);
  for (const i of await steps.positions(header, token, BITS, HASHES, cohort)) bloom[i >> 3] |= 1 << (i & 7);
  const slot = { question: { name: "value" }, name: "full", encoding: new Uint8Array(32), m: { flip } };
  const message = steps.messageOf("try-it", slot, cohort, bloom);
  return { bloom, permanent: await steps.permanent(bloom, BITS, flip, key, message) };
}

const fresh = (permanent, { p, q }) =>
  steps.randomise(permanent, BITS, p * ONE, q * ONE, random(32 * BITS / 8));

const chosen = () => NOISE[at("noise").selectedIndex];

/** A value, noise or person that changed: everything begins anew. */
async function begin() {
  const value = at("value").value, noise = chosen(), encoded = await encode(value, noise);
  if (value !== at("value").value || noise !== chosen()) return; // it changed again meanwhile
  shown = { noise, ...encoded };
  [counts, reports] = [new Array(BITS).fill(0), 0];
  const { once, forever } = losses(noise);
  at("loss").textContent = `One report costs at most ε = ${once.toFixed(2)}: whatever someone believed before, it `
    + `changes the odds by at most a factor of ${Math.exp(once).toFixed(1)}. All reports for ever, together: at most `
    + `ε = ${forever.toFixed(2)}.`;
  report(1);
}

/** Send so many reports more; the last is shown. */
function report(more) {
  const { noise, bloom, permanent } = shown;
  let sent;
  for (let n = 0; n < more; n++, reports++) {
    sent = unpacked(fresh(permanent, noise));
    sent.forEach((bit, i) => { counts[i] += bit; });
  }
  const kept = unpacked(permanent), truth = unpacked(bloom);
  at("bits").replaceChildren(bitRows([
    { name: "Bloom filter", bits: truth },
    { name: "after permanent noise", bits: kept, from: truth },
    { name: "the report: after instantaneous noise", bits: sent, from: kept },
  ]));
  const marks = { [`if set: ${percent(noise.q, 0)}`]: noise.q, [`if not: ${percent(noise.p, 0)}`]: noise.p };
  at("many").replaceChildren(bitBars(counts, reports, kept, marks));
  const lies = kept.filter((bit, i) => bit !== truth[i]).length;
  at("seen").textContent = `After ${grouped(reports)} ${reports === 1 ? "report" : "reports"} of one person the server `
    + `${reports < 30 ? "sees little but noise" : "begins to see the row with permanent noise"}. It can never learn more `
    + `than that row, of whose ${BITS} bits ${lies} are lies that nobody can tell from the truth.`;
}

function drawCrowd() {
  const share = at("share").value / 100, filter = { bits: BITS, hashes: HASHES, sizes: SIZES };
  const points = grow(share, together(chosen()), filter), last = points.at(-1);
  at("shown").textContent = percent(share, 0);
  at("sharpen").replaceChildren(sharpening(points, share));
  const first = points.find(({ low }) => low > 0);
  at("learnt").textContent = (first
    ? `From about ${grouped(first.people)} people on the value is told from nothing. `
    : "Even the largest crowd here cannot tell the value from nothing. ")
    + `With ${grouped(last.people)}: ${percent(last.estimate, 2)}, 95% interval ${percent(last.low, 2)} to `
    + `${percent(last.high, 2)}. Four times the people halve the interval.`;
}

async function start() {
  if (!globalThis.crypto?.subtle) {
    at("trouble").textContent = "Your browser gives its cryptography to pages over https, or from this machine, only.";
    return;
  }
  at("noise").append(...NOISE.map((noise) => html("option", {
    textContent: `${noise.name} (ε = ${losses(noise).once.toFixed(1)} a report)`,
  })));
  person = await newPerson();
  at("value").addEventListener("input", begin);
  at("noise").addEventListener("change", () => begin().then(drawCrowd));
  at("person").addEventListener("click", async () => { person = await newPerson(); await begin(); });
  at("again").addEventListener("click", () => report(1));
  for (const button of document.querySelectorAll("[data-more]"))
    button.addEventListener("click", () => report(Number(button.dataset.more)));
  at("share").addEventListener("input", drawCrowd);
  at("crowd").addEventListener("click", drawCrowd);
  await begin();
  drawCrowd();
}

start().catch((error) => { at("trouble").textContent = `This did not work: ${error.message}`; });
