/**
 * Returns a store in memory, which is lost when the program ends.
 * @returns {import("./deniable.js").Store}
 */
export declare function memoryStore(kept?: Map<any, any>): import("./deniable.js").Store;
/**
 * Returns one upload with several reports of one survey (docs/reference/wire.md, section 6). A batch
 * links its reports, so use it only for the reports of many people. Collectors accept it only with a gateway key.
 * @param {import("./deniable.js").Bytes[]} reports @returns {import("./deniable.js").Bytes}
 */
export declare function toBatch(reports: import("./deniable.js").Bytes[]): import("./deniable.js").Bytes;
