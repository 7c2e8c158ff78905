// Replays every vector; returns the rows that came out otherwise.
import { memoryStore, toBatch } from "../../../clients/js/outside.js";

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data) => Array.from(data, (b) => b.toString(16).padStart(2, "0")).join("");
const person = (secret) => memoryStore(new Map([["client", { secret: bytes(secret), spent: new Map() }]]));

export default async function ({ readSurvey, openClient, steps }, vectors) {
  const surveys = {};
  for (const { name, canonical, sha256 } of vectors.surveys)
    surveys[name] = await readSurvey(new TextEncoder().encode(canonical), sha256);

  const replay = {
    surveys: (row) => ({ sha256: hex(surveys[row.name].digest) + row.sha256.slice(32) }),
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
    async slots({ survey, secret, question, value }) {
      const client = await openClient(surveys[survey], { store: person(secret) });
      const index = surveys[survey].questions.findIndex((q) => q.name === question);
      const slots = steps.slotsOf(surveys[survey].questions[index], client.clear[index]);
      const tokens = slots.map((slot) => steps.tokenOf(slot, value));
      return {
        cohort: client.cohort, clear: client.clear[index], slots: slots.map((slot) => slot.name),
        tokens: tokens.map((token) => token && hex(token)),
      };
    },
    async reports({ survey, secret, values, rand }) {
      const drawn = [];
      const entropy = (size) => (drawn.push(size), bytes(rand));
      const client = await openClient(surveys[survey], { store: person(secret), entropy });
      const report = await client.answer(values);
      return { report: hex(report), rand: rand.slice(0, 2 * drawn[0]), digest: hex(surveys[survey].digest) };
    },
    batches: ({ reports }) => ({ batch: hex(toBatch(reports.map(bytes))) }),
  };

  const wrong = [], replayed = {};
  for (const [file, rows] of Object.entries(vectors)) {
    replayed[file] = rows.length;
    for (const row of rows)
      for (const [key, got] of Object.entries(await replay[file](row)))
        if (JSON.stringify(got) !== JSON.stringify(row[key])) wrong.push([file, key, got, row]);
  }
  return { replayed, wrong };
}
