/**
 * Opens a client that may answer any number of times. Anyone can compute its noise, so its reports
 * protect nobody; a warning in the console says so. It answers only surveys that were published with
 * `deniable check --testing`, whose reports no collector of the real survey accepts.
 *
 * @param {import("./deniable.js").Survey} survey
 * @param {{seed?: number, strict?: boolean}} [options] `seed` stands for one person: the same seed makes
 *   the same reports, as in Python. With `strict`, `answer` rejects an answer that cannot be reported
 *   in full, such as a choice that is not an option; by default it warns.
 * @returns {Promise<{testing: true, cohort: number, clear: number[][], answer:
 *   (values: {[question: string]: string | boolean | number | null | undefined}) => Promise<import("./deniable.js").Bytes>}>}
 */
export declare function openTestingClient(survey: import("./deniable.js").Survey, { seed, strict }?: {
    seed?: number;
    strict?: boolean;
}): Promise<{
    testing: true;
    cohort: number;
    clear: number[][];
    answer: (values: {
        [question: string]: string | boolean | number | null | undefined;
    }) => Promise<import("./deniable.js").Bytes>;
}>;
