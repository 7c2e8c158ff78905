/**
 * Browser client of deniable: turns answers into noisy reports, and sends them.
 *
 * Implements docs/reference/wire.md, scheme deniable-1; sections are numbered as there. WebCrypto
 * does randomness, SHA-256 and HMAC; numbers that can exceed 2^53 are BigInts. The `name` of an error is
 * SurveyError, SurveyExpired, SurveyRefused, InputError, BudgetExceeded, DeviceBudgetExceeded or StoreError.
 */
/**
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 * @typedef {{format: string, name: string, version: number, owner: string, description: string,
 *   expires: string, collect: string, budget: number, digest: Bytes, cohorts: number, size: number, testing: boolean,
 *   questions: {name: string, kind: string, description: string, protocol: any, loss: {once: number,
 *   forever: number | null}[]}[]}} Survey
 * @typedef {{update: (key: string, change: (old: any) => any) => Promise<any>,
 *   all: (prefix: string) => Promise<any[]>}} Store `update` replaces a value by `change(value)`
 *   (undefined: no value) in one durable transaction, unless it throws. `all` returns the values
 *   whose keys have the prefix.
 * @typedef {{epsilon?: number, groups?: number, size?: number, reportSize?: number, hashes?: number}} Limits
 *   The most that a page accepts of a survey: its budget in nats, groups of clients with equal clear
 *   fields, bytes of the published survey and of a report, hashes of a report.
 */
export type Bytes = Uint8Array<ArrayBuffer>;
export type Survey = {
    format: string;
    name: string;
    version: number;
    owner: string;
    description: string;
    expires: string;
    collect: string;
    budget: number;
    digest: Bytes;
    cohorts: number;
    size: number;
    testing: boolean;
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
export type Limits = {
    epsilon?: number;
    groups?: number;
    size?: number;
    reportSize?: number;
    hashes?: number;
};
/**
 * Reads a published survey. The digest (16 or 32 bytes, hexadecimal) must be that of the survey that
 * the author of the page reviewed; publishing checked its numbers.
 * @param {ArrayBuffer | Bytes} data @param {string} digest @returns {Promise<Survey>}
 */
export declare function readSurvey(data: ArrayBuffer | Bytes, digest: string): Promise<Survey>;
/**
 * Opens the client of one person, whose secret and ledger are in the store, created on first use.
 * `deviceBudget` limits ε over all surveys of the store: each reserves its whole budget at its first
 * answer. `perDays` limits it also within some days: {30: 4}. A survey whose name was answered for
 * another owner needs `acceptOwnerChange`.
 * @param {Survey} survey @param {{store?: Store, limits?: Limits, deviceBudget?: number,
 *   perDays?: {[days: number]: number}, acceptOwnerChange?: boolean}} [options]
 */
export declare function openClient(survey: Survey, { store, limits, deviceBudget, perDays, acceptOwnerChange }?: {
    store?: Store;
    limits?: Limits;
    deviceBudget?: number;
    perDays?: {
        [days: number]: number;
    };
    acceptOwnerChange?: boolean;
}): Promise<{
    cohort: number;
    clear: number[][];
    answer: (values: {
        [question: string]: string | boolean | number | null | undefined;
    }) => Promise<Bytes>;
}>;
/** What the ledger spent on each survey of the store. @param {Store} [store] */
export declare function readLedger(store?: Store): Promise<{
    survey: any;
    spent: number;
    reserved: number;
    since: any;
    owner: any;
}[]>;
/** Store in IndexedDB, shared by all tabs and workers of the origin. @returns {Store} */
export declare function browserStore(): Store;
/**
 * Sends each report with its own key, and retries until the collector accepts it. After `days` it is
 * dropped: collectors forget keys after 7, and might count it twice.
 * @param {string} collector address, without /v1
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
/** For testing.js and the test vectors. @type {any} */
export declare const steps: any;
