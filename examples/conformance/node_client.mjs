// An adapter for `deniable conformance`: the browser client, under node.
//
//     deniable conformance -- node examples/conformance/node_client.mjs
import { createInterface } from "node:readline";
import { replay } from "./replay.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { id, vector, input } = JSON.parse(line);
  const reply = replay[vector] ? { output: await replay[vector](input) } : { unsupported: "not known here" };
  console.log(JSON.stringify({ id, ...reply }));
}
