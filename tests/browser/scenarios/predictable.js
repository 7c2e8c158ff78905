// Tries to answer a real survey with predictable noise; returns how each attempt ended.
import { memoryStore } from "../../../clients/js/outside.js";
import { openTestingClient } from "../../../clients/js/testing.js";

export default async function ({ readSurvey, openClient, steps }, { canonical, sha256 }) {
  const survey = await readSurvey(new TextEncoder().encode(canonical), sha256);
  const zeros = (size) => new Uint8Array(size), ended = [];
  for (const attempt of [
    () => openTestingClient(survey),
    () => openTestingClient({ ...survey, testing: true }),
    () => steps.clientOf(survey, memoryStore(), zeros),
    () => steps.clientOf({ ...survey, testing: true }, memoryStore(), zeros),
  ])
    ended.push(await attempt().then(() => "opened", (error) => error.name));
  const [one, two] = await Promise.all([0, 1].map(() => openClient(survey, { store: memoryStore(), entropy: zeros })));
  const [first, second] = await Promise.all([one, two].map((client) => client.answer({})));
  return { ended, same: String(first) === String(second) };
}
