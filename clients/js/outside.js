// @ts-check
// For programs outside a browser: a store in memory, and batches. Pages send reports separately.

/**
 * Returns a store in memory, which is lost when the program ends.
 * @returns {import("./deniable.js").Store}
 */
export function memoryStore(kept = new Map()) {
  return {
    async update(key, change) {
      const value = change(kept.get(key));
      value === undefined ? kept.delete(key) : kept.set(key, value);
      return value;
    },
    all: async (prefix) => [...kept].filter(([key]) => key.startsWith(prefix)).map(([, value]) => value),
  };
}

/**
 * Returns one upload with several reports of one survey (docs/reference/wire.md, section 6). A batch
 * links its reports, so use it only for the reports of many people. Collectors accept it only with a gateway key.
 * @param {import("./deniable.js").Bytes[]} reports @returns {import("./deniable.js").Bytes}
 */
export function toBatch(reports) {
  const head = reports[0].slice(0, 20), bodies = reports.map((report) => report.subarray(20));
  if (!reports.every((report) => head.every((byte, i) => byte === report[i])))
    throw Object.assign(new Error("the reports answer different surveys: make one batch per survey"), { name: "InputError" });
  const count = new DataView(new ArrayBuffer(4));
  count.setUint32(0, reports.length, true);
  head[3] = 2;
  return new Uint8Array([head, new Uint8Array(count.buffer), ...bodies].flatMap((part) => [...part]));
}
