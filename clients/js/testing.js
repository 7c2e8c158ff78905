// @ts-check
// A client for tests and development: seeded, without a ledger, for surveys for testing only.
import { steps } from "./deniable.js";

const utf8 = (text) => new TextEncoder().encode(text);

/** First bytes of a stream of hashes, which depends on nothing but its name. */
async function stream(name, size) {
  const out = new Uint8Array(size);
  for (let i = 0; 32 * i < size; i++) {
    const block = await crypto.subtle.digest("SHA-256", utf8(`deniable/testing/${name}/${i}`));
    out.set(new Uint8Array(block).subarray(0, size - 32 * i), 32 * i);
  }
  return out;
}

/** What a report about this value does not contain, in words; undefined if it contains all of it. */
function lost({ kind, protocol: p }, value) {
  if (Number.isNaN(value)) return "NaN counts as no answer";
  if (p.name === "bins" && typeof value === "number") {
    const [low, high] = [p.edges[0], p.edges.at(-1)], inside = value >= Number(low) && value <= Number(high);
    return inside ? undefined : `numbers outside ${low} to ${high} are counted in the first or last bin`;
  }
  if (typeof value !== "string") return undefined;
  if (kind === "choice" && !p.mechanism.options.includes(value)) return "answers that are not options count as no answer";
  if (p.name === "single") return undefined;
  const symbols = p.alphabet === null ? utf8(value) : [...value], unit = p.alphabet === null ? "bytes" : "characters";
  if (symbols.length > p.max_length) return `strings of more than ${p.max_length} ${unit} are cut`;
  if (p.alphabet === null || [...value].every((c) => [...p.alphabet].includes(c))) return undefined;
  return "characters outside the alphabet are reported as one unknown symbol";
}

/**
 * Opens a client that may answer any number of times. Anyone can compute its noise, so its reports
 * protect nobody; a warning in the console says so. It answers only surveys that were published with
 * `deniable check --testing`, whose reports no collector of the real survey accepts.
 *
 * @param {import("./deniable.js").Survey} survey
 * @param {{seed?: number, strict?: boolean}} [options] `seed` stands for one person: the same seed makes
 *   the same reports, as in Python. With `strict`, `answer` rejects an answer that cannot be reported
 *   in full, such as a choice that is not an option; by default it warns.
 * @returns {Promise<{testing: true, cohort: number, clear: number[][], answer:
 *   (values: {[question: string]: string | boolean | number | null | undefined}) => Promise<import("./deniable.js").Bytes>}>}
 */
export async function openTestingClient(survey, { seed = 0, strict = false } = {}) {
  const failed = (name, message) => Object.assign(new Error(message), { name });
  if (survey.format !== "deniable-testing-survey/1")
    throw failed("SurveyError", `survey ${survey.name} is not for testing; publish it for testing with: deniable check survey.toml --testing -o testing.json`);
  if (!Number.isSafeInteger(seed) || seed < 0) throw failed("InputError", `seed must be an integer from 0 to 2^53 - 1, not ${seed}`);
  const kept = { secret: await stream(`${seed}/secret`, 32), spent: new Map() };
  let reports = 0;
  // This store does not let the client change anything, so nothing is charged.
  const store = { update: async () => kept, all: async () => [] };
  const client = await steps.clientOf(survey, store, (size) => stream(`${seed}/${++reports}`, size));
  console.warn(`deniable: this client of survey ${survey.name} is for testing: anyone can compute its noise, so its reports protect nobody`);
  return { ...client, testing: true, answer };

  async function answer(values) {
    const report = await client.answer(values);
    for (const question of survey.questions) {
      const value = values[question.name], reason = lost(question, value);
      if (reason && strict) throw failed("InputError", `question ${question.name}: ${reason}, such as ${JSON.stringify(value)}`);
      if (reason) console.warn(`deniable: question ${question.name}: ${reason}, such as ${JSON.stringify(value)}`);
    }
    return report;
  }
}
