// Replays every vector; returns those that came out otherwise.
import { replay } from "../../../examples/conformance/replay.js";

export default async function (_, cases) {
  const wrong = [];
  for (const { file, given, expected } of cases) {
    const got = await replay[file](given);
    for (const key of Object.keys(expected))
      if (JSON.stringify(got[key]) !== JSON.stringify(expected[key])) wrong.push([file, key, got, given]);
  }
  return wrong;
}
