// Answers with each value: the report's length, and how many random bytes the system was asked for.
import { memoryStore } from "../../../clients/js/outside.js";

export default async function ({ readSurvey, openClient }, { canonical, sha256, question, values }) {
  const survey = await readSurvey(new TextEncoder().encode(canonical), sha256);
  const draw = crypto.getRandomValues.bind(crypto);
  const seen = [];
  for (const value of values) {
    const client = await openClient(survey, { store: memoryStore(), limits: { epsilon: Infinity } });
    let drawn = 0;
    crypto.getRandomValues = (array) => ((drawn += array.byteLength), draw(array));
    const report = await client.answer({ [question]: value });
    crypto.getRandomValues = draw;
    seen.push([report.length, drawn]);
  }
  return seen;
}
