// Sends some reports, then `again` times tries all that waits as if its time had come. Returns the
// tallies, after each of them [tries, seconds until the next] of what was tried, and what is left.
import { memoryStore } from "../../../clients/js/outside.js";

export default async function (deniable, { canonical, sha256, values, collector, reports, again, aged }) {
  const store = globalThis.indexedDB ? deniable.browserStore() : memoryStore();
  const survey = await deniable.readSurvey(new TextEncoder().encode(canonical), sha256);
  const client = await deniable.openClient(survey, { store, limits: { epsilon: Infinity } });
  const sender = deniable.openSender(collector, { store, token: "ingest" }), tallies = [], waits = [];
  const note = async (tally) => {
    tallies.push(tally);
    for (const { tries, after } of await store.all("queue/"))
      if (tries) waits.push([tries, (after - Date.now()) / 1000]);
  };
  for (let i = 0; i < reports; i++) await note(await sender.send(await client.answer(values)));
  for (let i = 0; i < again; i++) {
    for (const { key } of await store.all("queue/"))
      await store.update(`queue/${key}`, (old) => ({ ...old, after: 0, busy: 0, since: old.since - aged }));
    await note(await sender.flush());
  }
  return { tallies, waits, queue: (await store.all("queue/")).length };
}
