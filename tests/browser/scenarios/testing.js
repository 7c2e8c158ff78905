// Makes reports with a client for testing; returns them, what was warned of, and how each case ended.
import { openTestingClient } from "../../../clients/js/testing.js";

export default async function ({ readSurvey }, { canonical, sha256, options, answers }) {
  const warned = [], kept = console.warn;
  console.warn = (text) => warned.push(text);
  const ended = [];
  try {
    const client = await openTestingClient(await readSurvey(new TextEncoder().encode(canonical), sha256), options);
    ended.push(client.testing);
    for (const values of answers)
      ended.push(await client.answer(values).then(
        (report) => Array.from(report, (b) => b.toString(16).padStart(2, "0")).join(""),
        (error) => `${error.name}: ${error.message}`));
  } catch (error) {
    ended.push(`${error.name}: ${error.message}`);
  }
  console.warn = kept;
  return { ended, warned };
}
