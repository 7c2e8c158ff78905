// Tries each case, [survey bytes as text, digest, values or null], and says how it ended.
import { memoryStore } from "../../../clients/js/outside.js";

export default async function ({ readSurvey, openClient }, cases) {
  const ended = [];
  for (const [text, digest, values] of cases) {
    try {
      const survey = await readSurvey(new TextEncoder().encode(text), digest);
      const client = await openClient(survey, { store: memoryStore() });
      ended.push(values ? `${(await client.answer(values)).length} bytes` : "read");
    } catch (error) {
      ended.push(`${error.name}: ${error.message}`);
    }
  }
  return ended;
}
