// One person answers in turn, each time [index of a survey, values]: how each ended, and the ledger.
// A published survey is [canonical, sha256, options of openClient].
import { memoryStore } from "../../../clients/js/outside.js";

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));

export default async function ({ readSurvey, openClient, readLedger }, { published, secret, answers, old = {} }) {
  const store = memoryStore(new Map([["client", { secret: bytes(secret), spent: new Map(Object.entries(old).map(([name, page]) => [name, new Map(page.map(([noise, ...amounts]) => [noise, amounts.map((x) => x ?? Infinity)]))])) }]]));
  const clients = [];
  for (const [canonical, sha256, options] of published) {
    const survey = await readSurvey(new TextEncoder().encode(canonical), sha256);
    clients.push(await openClient(survey, { store, ...options }));
  }
  const ended = [];
  for (const [index, values] of answers)
    ended.push(await clients[index].answer(values).then(() => "answered", (error) => error.name));
  const [{ spent, reserved, owners }] = await store.all("client");
  const pages = {};
  for (const [survey, page] of spent)
    pages[survey] = [...page].map(([noise, [sum, limit]]) => [noise, sum, limit === Infinity ? null : limit]);
  return { ended, pages, reserved: Object.fromEntries(reserved ?? []), owners: Object.fromEntries(owners ?? []), shown: await readLedger(store) };
}
