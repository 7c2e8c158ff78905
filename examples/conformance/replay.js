// The browser client replays the vectors, in a page or under node: what docs/how-to/other-languages.md asks for.
import { openClient, readSurvey, steps } from "../../clients/js/deniable.js";
import { memoryStore, toBatch } from "../../clients/js/outside.js";

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data) => Array.from(data, (b) => b.toString(16).padStart(2, "0")).join("");
const sum = async (data) => hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)));
const person = (secret, spent = new Map()) => memoryStore(new Map([["client", { secret: bytes(secret), spent }]]));

async function published(canonical) {
  const data = new TextEncoder().encode(canonical);
  return readSurvey(data, await sum(data));
}

/** A function from input to output for each kind of vector. */
export const replay = {
  async surveys({ canonical }) {
    const { digest } = await published(canonical);
    return { sha256: hex(digest) + (await sum(new TextEncoder().encode(canonical))).slice(32) };
  },
  async hashing({ survey, question, slot, bits, hashes, cohort, token }) {
    const header = await steps.headerOf(survey, question, slot);
    return { header: hex(header), positions: await steps.positions(header, bytes(token), bits, hashes, cohort) };
  },
  async permanent({ survey, question, slot, encoding, bits, flip, cohort, secret, filter }) {
    const names = { question: { name: question }, name: slot, encoding: bytes(encoding), m: { flip } };
    const message = steps.messageOf(survey, names, cohort, bytes(filter));
    const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return { message: hex(message), permanent: hex(await steps.permanent(bytes(filter), bits, flip, key, message)) };
  },
  instantaneous: ({ width, if_zero, if_one, bits, rand }) => ({
    output: hex(steps.randomise(bytes(bits), width, if_zero, if_one, bytes(rand))),
  }),
  async slots({ canonical, secret, question, value }) {
    const survey = await published(canonical);
    const client = await openClient(survey, { store: person(secret) });
    const index = survey.questions.findIndex((q) => q.name === question);
    const slots = steps.slotsOf(survey.questions[index], client.clear[index]);
    const tokens = slots.map((slot) => steps.tokenOf(slot, value));
    return {
      cohort: client.cohort, clear: client.clear[index], slots: slots.map((slot) => slot.name),
      tokens: tokens.map((token) => token && hex(token)),
    };
  },
  async reports({ canonical, secret, values, rand }) {
    const client = await openClient(await published(canonical), { store: person(secret) });
    // No option of the client chooses its random bytes, so those of the platform are replaced.
    const system = crypto.getRandomValues, given = bytes(rand);
    let drawn = 0;
    crypto.getRandomValues = (out) => {
      out.set(given.subarray(drawn, drawn + out.length));
      drawn += out.length;
      return out;
    };
    const report = await client.answer(values).finally(() => (crypto.getRandomValues = system));
    if (drawn !== given.length) throw new Error(`expected ${given.length} random bytes, drew ${drawn}`);
    return { report: hex(report) };
  },
  batches: ({ reports }) => ({ batch: hex(toBatch(reports.map(bytes))) }),
  async ledger({ surveys, answers }) {
    const accepted = [], spent = [];
    let book = new Map();
    for (const { survey: index, secret, values } of answers) {
      const survey = await published(surveys[index]), store = person(secret, book);
      const client = await openClient(survey, { store });
      const refused = await client.answer(values).then(() => null, (error) => error);
      if (refused && refused.name !== "BudgetExceeded") throw refused;
      accepted.push(!refused);
      ({ spent: book } = await store.update("client", (kept) => kept));
      const page = [...(book.get(survey.name)?.values() ?? [])];
      spent.push(page.reduce((total, [sum, limit]) => total + Math.min(sum, limit), 0));
    }
    return { accepted, spent };
  },
};
