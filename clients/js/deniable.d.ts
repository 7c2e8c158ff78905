/**
 * The browser client of deniable: values in, reports out, paid for before they exist.
 *
 * Made from docs/reference/wire.md, scheme deniable-1; the numbers below are its sections. Randomness, SHA-256
 * and HMAC are WebCrypto's; numbers that can pass 2^53 are BigInts. Errors differ by their `name`:
 * SurveyError, SurveyExpired, InputError, BudgetExceeded, StoreError.
 */
/**
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 * @typedef {{name: string, version: number, owner: string, description: string, expires: string,
 *   collect: string, budget: number, digest: Bytes, cohorts: number, questions: {name: string, kind:
 *   string, description: string, protocol: any, loss: {once: number, forever: number | null}[]}[]
 *   }} Survey
 * @typedef {{update: (key: string, change: (old: any) => any) => Promise<any>,
 *   all: (prefix: string) => Promise<any[]>}} Store `update` is one transaction, durable when it
 *   resolves: the value becomes what `change` makes of the old one (undefined: none), unless it
 *   throws. `all`: the values whose keys begin so.
 */
export type Bytes = Uint8Array<ArrayBuffer>;
export type Survey = {
    name: string;
    version: number;
    owner: string;
    description: string;
    expires: string;
    collect: string;
    budget: number;
    digest: Bytes;
    cohorts: number;
    questions: {
        name: string;
        kind: string;
        description: string;
        protocol: any;
        loss: {
            once: number;
            forever: number | null;
        }[];
    }[];
};
export type Store = {
    update: (key: string, change: (old: any) => any) => Promise<any>;
    all: (prefix: string) => Promise<any[]>;
};
/**
 * A published survey. Its digest (hexadecimal, 16 or 32 bytes) must be the one that the page's author
 * reviewed: publishing has checked all its numbers.
 * @param {ArrayBuffer | Bytes} data @param {string} digest @returns {Promise<Survey>}
 */
export declare function readSurvey(data: ArrayBuffer | Bytes, digest: string): Promise<Survey>;
/**
 * Answers one survey for one person, whose secret and ledger are in the store, made on first use.
 * @param {Survey} survey
 * @param {{store?: Store, entropy?: (size: number) => Bytes}} [options] entropy is for tests
 */
export declare function openClient(survey: Survey, { store, entropy }?: {
    store?: Store;
    entropy?: (size: number) => Bytes;
}): Promise<{
    cohort: number;
    clear: number[][];
    answer: (values: {
        [question: string]: string | boolean | null | undefined;
    }) => Promise<Bytes>;
}>;
/** IndexedDB of the page's origin, shared by its tabs and workers. @returns {Store} */
export declare function browserStore(): Store;
/**
 * Sends each report as an upload with a key of its own, until the collector has it. After `days` it
 * is dropped: collectors forget keys after 7, and might count it again.
 * @param {string} collector its address, before /v1
 * @param {{store?: Store, token?: string, days?: number}} [options]
 */
export declare function openSender(collector: string, { store, token, days }?: {
    store?: Store;
    token?: string;
    days?: number;
}): {
    send: (report: Bytes) => Promise<{
        sent: number;
        refused: number[];
        waiting: number;
    }>;
    flush: () => Promise<{
        sent: number;
        refused: number[];
        waiting: number;
    }>;
};
/** For the vectors. @type {any} */
export declare const steps: any;
