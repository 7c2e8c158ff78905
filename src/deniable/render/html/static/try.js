// The steps of the browser client, shown one by one. Nothing is sent and nothing is stored.
import { bitBars, bitRows, grouped, html, percent, sharpening } from "./charts.js";
import { grow } from "./crowd.js";
import { steps } from "./deniable.js";

const ONE = 2 ** 32, BITS = 32, HASHES = 2, COHORTS = 64;
const SIZES = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
const NOISE = [
  { name: "as in the paper", f: 1 / 2, p: 1 / 2, q: 3 / 4 },
  { name: "more noise", f: 3 / 4, p: 1 / 2, q: 3 / 4 },
  { name: "less noise", f: 1 / 4, p: 1 / 4, q: 3 / 4 },
];
const at = (id) => document.getElementById(id);
const random = (size) => crypto.getRandomValues(new Uint8Array(size));
const unpacked = (bytes) => Array.from({ length: BITS }, (_, i) => (bytes[i >> 3] >> (i & 7)) % 2 === 1);

let client, shown, counts, reports;

/** Both kinds of noise together: probability that a bit that is 0, or 1, is sent as 1. */
function combined({ f, p, q }) {
  return { p: f / 2 * q + (1 - f / 2) * p, q: f / 2 * p + (1 - f / 2) * q };
}

/** ε in nats: per report, and in total. */
function losses(noise) {
  const { p, q } = combined(noise), odds = (1 - noise.f / 2) / (noise.f / 2);
  return { once: HASHES * Math.log(q * (1 - p) / (p * (1 - q))), forever: 2 * HASHES * Math.log(odds) };
}

async function newClient() {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", random(32), algorithm, false, ["sign"]);
  return { key, cohort: random(1)[0] % COHORTS };
}

/** The bits of a value, and the same bits after the permanent noise of this client. */
async function encode(value, { f }) {
  const { key, cohort } = client, bloom = new Uint8Array(BITS / 8), flip = f / 2 * ONE;
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

/** Start again with a new value, noise or client. */
async function begin() {
  const value = at("value").value, noise = chosen(), encoded = await encode(value, noise);
  if (value !== at("value").value || noise !== chosen()) return; // it changed again meanwhile
  shown = { noise, ...encoded };
  [counts, reports] = [new Array(BITS).fill(0), 0];
  const { once, forever } = losses(noise);
  at("loss").textContent = `Privacy loss: ε = ${once.toFixed(2)} per report. A report changes the odds of any guess about your `
    + `answer by a factor of at most ${Math.exp(once).toFixed(1)}. All reports together: ε = ${forever.toFixed(2)} at most, `
    + "however many you send.";
  report(1);
}

/** Send `more` reports and show the last one. */
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
    { name: "report: after fresh noise", bits: sent, from: kept },
  ]));
  at("many").replaceChildren(bitBars(counts, reports, kept, [noise.p, noise.q]));
  at("expected").textContent = `dotted lines: expected shares of bits that are 0 (${percent(noise.p, 0)}) and 1 (${percent(noise.q, 0)}) after permanent noise`;
  const changed = kept.filter((bit, i) => bit !== truth[i]).length;
  at("seen").textContent = `After ${grouped(reports)} ${reports === 1 ? "report" : "reports"} of one client the server `
    + `${reports < 30 ? "sees little but noise" : "begins to see the bits after permanent noise"}. It can never learn more `
    + `than those ${BITS} bits, of which permanent noise changed ${changed}; nobody can tell which.`;
}

function drawCrowd() {
  const share = at("share").value / 100, filter = { bits: BITS, hashes: HASHES, sizes: SIZES };
  const points = grow(share, combined(chosen()), filter), last = points.at(-1);
  at("shown").textContent = percent(share, 0);
  at("sharpen").replaceChildren(sharpening(points, share));
  const first = points.find(({ low }) => low > 0);
  at("learnt").textContent = (first
    ? `From about ${grouped(first.clients)} clients on, the estimate is clearly above zero. `
    : "Even the largest crowd here is too small to detect the answer. ")
    + `With ${grouped(last.clients)} clients: ${percent(last.estimate, 2)}, 95% confidence interval ${percent(last.low, 2)} to `
    + `${percent(last.high, 2)}. Four times as many clients halve the interval.`;
}

async function start() {
  if (!globalThis.crypto?.subtle) {
    at("trouble").textContent = "Your browser offers cryptography only to pages that are loaded over https or from this machine. Open this page that way.";
    return;
  }
  at("noise").append(...NOISE.map((noise) => html("option", {
    textContent: `${noise.name} (ε = ${losses(noise).once.toFixed(1)} per report)`,
  })));
  client = await newClient();
  at("value").addEventListener("input", begin);
  at("noise").addEventListener("change", () => begin().then(drawCrowd));
  at("client").addEventListener("click", async () => { client = await newClient(); await begin(); });
  at("again").addEventListener("click", () => report(1));
  for (const button of document.querySelectorAll("[data-more]"))
    button.addEventListener("click", () => report(Number(button.dataset.more)));
  at("share").addEventListener("input", drawCrowd);
  at("crowd").addEventListener("click", drawCrowd);
  await begin();
  drawCrowd();
}

start().catch((error) => { at("trouble").textContent = `This page failed: ${error.message}`; });
