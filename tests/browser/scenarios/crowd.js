// Many people, each with a new secret, answer once: their reports, in hexadecimal.
import { memoryStore } from "../../../clients/js/outside.js";

const hex = (data) => Array.from(data, (b) => b.toString(16).padStart(2, "0")).join("");

export default async function ({ readSurvey, openClient }, { canonical, sha256, values, people }) {
  const survey = await readSurvey(new TextEncoder().encode(canonical), sha256);
  const reports = [];
  for (let i = 0; i < people; i++) {
    const client = await openClient(survey, { store: memoryStore(), limits: { epsilon: Infinity } });
    reports.push(hex(await client.answer(values)));
  }
  return reports;
}
