// Several people, one after another, answer and send: how many the collector took.
import { memoryStore } from "../../../clients/js/outside.js";

export default async function (deniable, { address, digest, values, people }) {
  const published = await (await fetch(address.survey, { credentials: "omit" })).arrayBuffer();
  const survey = await deniable.readSurvey(published, digest);
  let sent = 0;
  for (let i = 0; i < people; i++) {
    const store = memoryStore(), client = await deniable.openClient(survey, { store, limits: { epsilon: Infinity } });
    const tally = await deniable.openSender(address.collector, { store }).send(await client.answer(values));
    sent += tally.sent;
  }
  return sent;
}
