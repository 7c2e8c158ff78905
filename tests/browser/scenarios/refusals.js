// Tries each case, [survey bytes as text, digest, values or null, limits], and says how it ended.
import { memoryStore } from "../../../clients/js/outside.js";

export default async function ({ readSurvey, openClient }, cases) {
  const ended = [];
  for (const [text, digest, values, limits] of cases) {
    try {
      const survey = await readSurvey(new TextEncoder().encode(text), digest);
      const client = await openClient(survey, { store: memoryStore(), limits });
      let end = "read";
      for (const each of [values ?? []].flat()) end = `${(await client.answer(each)).length} bytes`;
      ended.push(end);
    } catch (error) {
      ended.push(`${error.name}: ${error.message}`);
    }
  }
  return ended;
}
