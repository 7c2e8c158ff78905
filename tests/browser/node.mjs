// node node.mjs MODULE SCENARIO < ARGUMENTS: prints what the scenario returns, as JSON.
import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto; // Node 18 has it under this name only
const [module, scenario] = process.argv.slice(2);
const { default: run } = await import(scenario);
const result = await run(await import(module), JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(result), () => process.exit(0)); // whatever timers still wait
