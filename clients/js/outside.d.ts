/**
 * A store that forgets everything when the program ends.
 * @returns {import("./deniable.js").Store}
 */
export declare function memoryStore(kept?: Map<any, any>): import("./deniable.js").Store;
/**
 * Reports of one survey as one upload (docs/reference/wire.md, section 6). It links what it holds together, so
 * it is for reports of many people.
 * @param {import("./deniable.js").Bytes[]} reports @returns {import("./deniable.js").Bytes}
 */
export declare function toBatch(reports: import("./deniable.js").Bytes[]): import("./deniable.js").Bytes;
