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

const ONE = 2 ** 32, MOST = 65536, DAY = 86_400_000, HOLD = 30_000, NANO = 1e9;
const LIMITS = { epsilon: 20, groups: 2 ** 23, size: 2 ** 18, reportSize: MOST, hashes: MOST };

const failed = (name, message) => Object.assign(new Error(message), { name });
function check(fine, name, message) {
  if (!fine) throw failed(name, message);
}

// Notation

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const utf8 = (text) => new TextEncoder().encode(text); // a lone surrogate becomes U+FFFD
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const le = (x, size) => Uint8Array.from({ length: size }, (_, i) => x / 256 ** i);
const be32 = (x) => le(x, 4).reverse();

function join(...parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (out.set(part, at), at + part.length), 0);
  return out;
}

const bytesOf = (part) => (typeof part === "string" ? utf8(part) : part);
const fields = (...parts) => join(...parts.map(bytesOf).flatMap((b) => [be32(b.length), b]));

/** Random bytes, in chunks that browsers allow. */
function random(size) {
  const out = new Uint8Array(size);
  for (let at = 0; at < size; at += MOST) crypto.getRandomValues(out.subarray(at, at + MOST));
  return out;
}

const sha256 = async (message) => new Uint8Array(await crypto.subtle.digest("SHA-256", message));
const hmac = async (key, message) => new Uint8Array(await crypto.subtle.sign("HMAC", key, message));
const hmacKey = (raw) =>
  crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

// 1. The survey

const FORMAT = "deniable-survey/1", TESTING_FORMAT = "deniable-testing-survey/1";
const WAYS = new RegExp("^string ((single|ngrams|prefixes) bloom(-asymmetric)? deniable-1|(single|prefixes) localhash(-permanent)? )$"
  + "|^(choice single|number bins) (choice(-asymmetric)?|subset) $|^boolean single boolean $");
const mechanismsOf = (p) => (p.name === "ngrams" ? [p.full, ...p.grams] : [p.mechanism]);

const reportsNumber = (kind) => kind.startsWith("localhash");

/** Bits, bytes, cohorts and random bytes of a slot. */
function shapeOf({ kind, p, q, bits = 1, cohorts = 1, values, digits, families, options, random_bytes }) {
  const local = reportsNumber(kind), lines = families * values ** (digits - 1);
  const flags = options ? options.length + (kind === "subset" ? 1 : 0) : bits;
  const width = local ? 32 - Math.clz32(values - 1) : flags, size = Math.ceil(width / 8);
  const rand = local ? 4 : random_bytes ?? size * levels(p, q);
  return { width, size, cohorts: local ? lines : cohorts, rand };
}

/**
 * Reads a published survey. The digest (16 or 32 bytes, hexadecimal) must be that of the survey that
 * the author of the page reviewed; publishing checked its numbers.
 * @param {ArrayBuffer | Bytes} data @param {string} digest @returns {Promise<Survey>}
 */
export async function readSurvey(data, digest) {
  const text = decoder.decode(data).replace(/\n$/, ""), sum = await sha256(utf8(text)), size = text.length;
  const same = digest?.length >= 32 && hex(sum).startsWith(digest);
  check(same, "SurveyError", `the digest of the survey is ${hex(sum)}, not ${digest}`);
  const raw = JSON.parse(text), counts = [];
  const known = [FORMAT, TESTING_FORMAT].includes(raw.format) && Number.isSafeInteger(raw.budget);
  check(known, "SurveyError", `unknown format ${raw.format}, or budget ${raw.budget} above 2^53`);
  for (const { kind, protocol } of raw.questions)
    for (const m of mechanismsOf(protocol)) {
      const way = `${kind} ${protocol.name} ${m?.kind} ${m?.scheme ?? ""}`;
      check(WAYS.test(way), "SurveyError", `unsupported protocol: ${way}`);
      counts.push(shapeOf(m).cohorts);
    }
  let cohorts = 1;
  while (cohorts <= MOST && counts.some((count) => cohorts % count)) cohorts++;
  check(cohorts <= MOST, "SurveyError", "the survey has more than 65536 cohorts");
  return { ...raw, digest: sum.slice(0, 16), cohorts, size, testing: raw.format === TESTING_FORMAT };
}

/** Refuses a survey beyond the limits of the page; this depends on the survey only. */
function checkLimits(survey, limits) {
  const most = { ...LIMITS, ...limits }, found = { epsilon: survey.budget / NANO, groups: survey.cohorts, size: survey.size };
  const sum = { reportSize: survey.cohorts > 1 ? 2 : 0, hashes: 0 };
  for (const { protocol: p } of survey.questions) {
    sum.reportSize += p.name === "prefixes" ? 1 : p.name === "ngrams" ? p.grams.length : 0; // clear fields
    if (p.name === "prefixes") found.groups *= p.levels.length;
    if (p.name === "ngrams") found.groups *= Number(binomial(positionsOf(p), p.grams.length));
    for (const m of mechanismsOf(p)) sum.reportSize += shapeOf(m).size, sum.hashes += m.hashes ?? 1;
  }
  for (const [name, got] of Object.entries({ ...found, ...sum }))
    check(got <= most[name], "SurveyRefused", `survey ${survey.name} has ${name} = ${got}, more than this page's limit ${most[name]}`);
}

// 2. Clear fields

function binomial(n, r) {
  let ways = 1n;
  for (let i = 1; i <= r; i++) ways = (ways * BigInt(n - r + i)) / BigInt(i);
  return ways;
}

/** Subset number x, in lexicographic order, of r of the numbers below n. @returns {number[]} */
function subsetOf(x, n, r) {
  const chosen = [];
  for (let i = 0, ways = binomial(n, r); i < n; i++) {
    const having = (ways * BigInt(r - chosen.length)) / BigInt(n - i); // subsets that contain i
    if (x < having) chosen.push(i), (ways = having);
    else (x -= having), (ways -= having);
  }
  return chosen;
}

const positionsOf = (p) => (p.overlap ? p.max_length - p.gram + 1 : p.max_length / p.gram);

/** Clear fields of a question. @returns {Promise<number[]>} */
async function clearOf(p, draw) {
  if (p.name === "single" || p.name === "bins") return [];
  if (p.name === "prefixes") {
    let x = await draw("level", ONE), level = 0;
    while (x >= p.levels[level][1]) x -= BigInt(p.levels[level++][1]);
    return [level];
  }
  const end = positionsOf(p), grams = p.grams.length;
  return subsetOf(await draw("positions", binomial(end, grams)), end, grams);
}

// 3. Slots and tokens

function slotsOf(question, clear) {
  const { protocol: p, encodings, loss } = question, step = p.overlap ? 1 : p.gram;
  const part = (name, start, length) => ({ name, start, end: start + length });
  const parts = p.name === "prefixes"
    ? clear.map((i) => part(`level:${i}:${p.levels[i][0]}`, 0, p.levels[i][0]))
    : [part("full", 0, p.max_length), ...clear.map((g) => part(`gram:${g}`, g * step, p.gram))];
  return mechanismsOf(p).map((m, i) => {
    const fixed = { encoding: unhex(encodings[i]), clear: Uint8Array.from(i ? [] : clear) };
    return { question, m, ...fixed, ...parts[i], ...shapeOf(m), ...loss[i] };
  });
}

/** Token of a value for a slot. */
function tokenOf({ question: { protocol: p }, m, start, end }, value) {
  if (p.name === "bins") return binOf(p, m, value);
  if (typeof value !== "string") return value;
  const bytes = utf8(value), text = decoder.decode(bytes);
  if (p.name === "single") return m.options ? text : bytes;
  const letters = [...(p.alphabet ?? "")], row = new Uint8Array(p.max_length).fill(0xff);
  const symbol = (c) => (letters.includes(c) ? letters.indexOf(c) : 0xfe);
  const symbols = p.alphabet === null ? bytes : [...text.slice(0, 2 * p.max_length)].map(symbol);
  row.set(symbols.slice(0, p.max_length));
  return row.subarray(start, end);
}

/** Label of the bin that holds a number; null for no answer and NaN. */
function binOf({ edges }, { options }, value) {
  const inner = edges.slice(1, -1).map(Number);
  return value === null || Number.isNaN(value) ? null : options[inner.filter((edge) => value >= edge).length];
}

// 4. Bits

const headerOf = (...names) => sha256(fields("deniable-1/hash", ...names));

async function positions(header, token, k, h, c) {
  const seed = new DataView((await sha256(join(header, token))).buffer);
  const x = seed.getBigUint64(0, true), y = seed.getBigUint64(8, true) | 1n;
  return Array.from({ length: h }, (_, j) => {
    let z = BigInt.asUintN(64, x + BigInt(c * h + j + 1) * y);
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    z ^= z >> 31n;
    return Number(((z >> 32n) * BigInt(k)) >> 32n);
  });
}

/** Number of a token with local hashing. */
async function numberOf({ values: g, digits }, header, token, c) {
  const lines = g ** (digits - 1);
  let line = c % lines, number = 0, factor = 1;
  let [cell] = await positions(header, token, g ** digits, 1, Math.floor(c / lines));
  for (; cell > 0; cell = Math.floor(cell / g)) {
    number += factor * (cell % g);
    factor = line % g;
    line = Math.floor(line / g);
  }
  return number % g;
}

/** Packed bits before noise; with local hashing a number, or null; for a subset the category. */
async function trueBits({ question, m, name, width, size }, survey, token, c) {
  const header = await headerOf(survey, question.name, name), bits = new Uint8Array(size);
  if (reportsNumber(m.kind)) return token && numberOf(m, header, token, c);
  if (m.kind === "subset") return m.options.includes(token) ? m.options.indexOf(token) : width - 1;
  let set = m.options ? [m.options.indexOf(token)] : [token ? 0 : -1];
  if (m.hashes) set = token ? await positions(header, token, width, m.hashes, c) : [];
  for (const i of set) if (i >= 0) bits[i >> 3] |= 1 << (i & 7);
  return bits;
}

// 5. Noise

/** Random words that these thresholds can need. */
const levels = (...thresholds) => Math.max(...thresholds.map((t) => t % ONE && 1 + Math.clz32(t & -t)));

/** A bit becomes 1 with probability ifOne/2^32 if it is set, else ifZero/2^32. */
function randomise(bits, width, ifZero, ifOne, words) {
  const size = bits.length, count = levels(ifZero, ifOne);
  const digit = (threshold, place) => -(Math.floor(threshold / 2 ** place) % 2);
  return bits.map((byte, i) => {
    const lanes = i < size - 1 ? 255 : 255 >> (8 * size - width);
    const target = (place) => ((byte & digit(ifOne, place)) | (~byte & digit(ifZero, place))) & lanes;
    let result = target(32), undecided = lanes ^ result;
    for (let level = 0; level < count; level++) {
      const wanted = target(31 - level), uniform = words[level * size + i];
      result |= undecided & wanted & ~uniform;
      undecided &= ~(uniform ^ wanted);
    }
    return result;
  });
}

/** Message that permanent noise is derived from. */
function messageOf(survey, { question, name, encoding, m }, c, bits) {
  const thresholds = m.keep === undefined ? be32(m.flip) : join(be32(m.flip), be32(m.keep));
  return fields("deniable-1/prr", survey, question.name, name, encoding, thresholds, be32(c), bits);
}

/** Keyed stream of permanent noise, of at least this many bytes. */
async function streamOf(key, message, size) {
  const own = await hmacKey(await hmac(key, message)), blocks = Math.ceil(size / 32);
  return join(...(await Promise.all(Array.from({ length: blocks }, (_, n) => hmac(own, be32(n))))));
}

async function permanent(bits, width, flip, key, message, keep = ONE - flip) {
  const words = await streamOf(key, message, levels(flip, keep) * bits.length);
  return randomise(bits, width, flip, keep, words);
}

/** A number n below g stays itself with probability own/2^32, and becomes each other with other/2^32. */
function randomiseNumber(n, g, own, other, rand) {
  const u = rand.reduce((sum, byte, i) => sum + byte * 256 ** i, 0);
  if (n === null) return Math.floor((u * g) / ONE);
  return u < own ? n : (n + 1 + Math.floor((u - own) / other)) % g;
}

/** Packed subset of the categories, which contains the client's own with probability q/2^32. */
function noisySubset({ m: { q, members }, width, size }, own, rand) {
  const u = BigInt("0x" + hex(Uint8Array.from(rand).reverse())), all = 1n << BigInt(8 * rand.length);
  const limit = (BigInt(q) * all) >> 32n, others = width - 1, contained = u < limit;
  const left = contained ? members - 1 : members, ways = binomial(others, left);
  const number = contained ? (u * ways) / limit : ((u - limit) * ways) / (all - limit);
  const chosen = subsetOf(number, others, left).map((i) => (i < own ? i : i + 1));
  const bits = new Uint8Array(size);
  for (const i of contained ? [own, ...chosen] : chosen) bits[i >> 3] |= 1 << (i & 7);
  return bits;
}

/** Noisy bytes of a slot. */
async function noised(slot, bits, key, message, rand) {
  const { m, width, size } = slot;
  if (m.kind === "subset") return noisySubset(slot, bits, rand);
  if (!reportsNumber(m.kind)) {
    const kept = m.flip ? await permanent(bits, width, m.flip, key, message, m.keep) : bits;
    return randomise(kept, width, m.p, m.q, rand);
  }
  let number = bits;
  if (m.flip) {
    const word = (await streamOf(key, message, 4)).subarray(0, 4);
    number = randomiseNumber(bits, m.values, m.keep, m.flip, word);
  }
  return le(randomiseNumber(number, m.values, m.q, m.p, rand), size);
}

// 6. The report

/**
 * Opens the client of one person, whose secret and ledger are in the store, created on first use.
 * `deviceBudget` limits ε over all surveys of the store: each reserves its whole budget at its first
 * answer. `perDays` limits it also within some days: {30: 4}. A survey whose name was answered for
 * another owner needs `acceptOwnerChange`.
 * @param {Survey} survey @param {{store?: Store, limits?: Limits, deviceBudget?: number,
 *   perDays?: {[days: number]: number}, acceptOwnerChange?: boolean}} [options]
 */
export async function openClient(survey, { store = browserStore(), limits, deviceBudget, perDays = {}, acceptOwnerChange } = {}) {
  check(!survey.testing, "SurveyError", "this survey is for testing: see testing.js");
  const periods = Object.entries(perDays), all = [...periods.flat(), deviceBudget ?? 1].map(Number);
  check(all.every((x) => x > 0), "InputError", "deviceBudget and perDays must be numbers above 0");
  check(deviceBudget || !periods.length, "InputError", "perDays needs a deviceBudget: it does not bound the total");
  checkLimits(survey, limits);
  return clientOf(survey, store, random, { total: deviceBudget ?? Infinity, periods, acceptOwnerChange });
}

/** What the ledger spent on each survey of the store. @param {Store} [store] */
export async function readLedger(store = browserStore()) {
  const [kept] = await store.all("client"), owners = kept?.owners ?? new Map();
  const names = new Set([...(kept?.spent?.keys() ?? []), ...(kept?.reserved?.keys() ?? [])]);
  return [...names].map((survey) => {
    const reserved = reservedOf(kept, survey), spent = spentOf(kept.spent.get(survey) ?? new Map()) / NANO;
    return { survey, spent, reserved: sumOf(reserved) / NANO, since: reserved[0]?.[0] ?? null, owner: owners.get(survey) ?? null };
  });
}

/**
 * A client that draws its random bytes from `entropy`. Only testing.js chooses another than `random`,
 * for surveys with the format for testing, which their digest covers.
 * @param {Survey} survey @param {Store} store
 * @param {{total: number, periods: [string, number][], acceptOwnerChange?: boolean}} device
 */
async function clientOf(survey, store, entropy, device = { total: Infinity, periods: [] }) {
  const fine = entropy === random || survey.format === TESTING_FORMAT;
  check(fine, "SurveyError", "noise that can be predicted is only for surveys for testing");
  const made = { secret: random(32), spent: new Map() };
  const { secret } = await store.update("client", (kept) => kept ?? made), key = await hmacKey(secret);
  const draw = async (question, what, bound) => {
    const message = fields("deniable-1/clear", survey.name, question, what);
    return BigInt("0x" + hex(await hmac(key, message))) % BigInt(bound);
  };
  const cohort = Number(await draw("", "cohort", survey.cohorts));
  const clear = await Promise.all(survey.questions.map((q) => clearOf(q.protocol, draw.bind(null, q.name))));
  const slots = survey.questions.flatMap((q, i) => slotsOf(q, clear[i]));
  return { cohort, clear, answer };

  /**
   * Makes one report about all questions. Null or left out means no answer, which reports do not
   * reveal. Rejects, and spends nothing, if the budget would be exceeded.
   * @param {{[question: string]: string | boolean | number | null | undefined}} values @returns {Promise<Bytes>}
   */
  async function answer(values) {
    const { name, questions, expires, digest, cohorts } = survey, now = new Date();
    const today = new Date(+now - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
    check(today <= expires, "SurveyExpired", `survey ${name} expired on ${expires}`);
    const given = new Map(Object.entries(values)), names = questions.map((q) => q.name);
    const unknown = [...given.keys()].filter((key) => !names.includes(key));
    check(!unknown.length, "InputError", `survey ${name} has no question ${unknown}`);
    const filled = await Promise.all(slots.map((slot) => fill(slot, given.get(slot.question.name) ?? null)));
    let refusal;
    await store.update("client", (kept) => {
      const next = admitted(kept, today); // kept even if the budget of the survey does not suffice
      try {
        return charged(next, filled);
      } catch (error) {
        refusal = error;
        return next;
      }
    });
    if (refusal) throw refusal;
    const rand = await entropy(slots.reduce((sum, slot) => sum + slot.rand, 0));
    let at = 0;
    const sent = await Promise.all(filled.map(({ slot, bits, message }) =>
      noised(slot, bits, key, message, rand.subarray(at, (at += slot.rand)))));
    const parts = sent.flatMap((bits, i) => [slots[i].clear, bits]);
    return join(utf8("dn\x01\x01"), digest, le(cohort, cohorts > 1 ? 2 : 0), ...parts);
  }

  /** Bits before noise, which never leave the device, and the name of their noise. */
  async function fill(slot, value) {
    const { question, m, cohorts } = slot, c = cohort % cohorts;
    const type = ["boolean", "number"].includes(question.kind) ? question.kind : "string";
    const fine = value === null || typeof value === type;
    check(fine, "InputError", `${question.name} must be a ${type} or null`);
    let bits = await trueBits(slot, survey.name, tokenOf(slot, value), c);
    if (!m.flip) return { slot, bits, noise: `${question.name}/${slot.name}` };
    if (bits === null) {
      const own = fields("deniable-1/no-answer", survey.name, question.name, slot.name, slot.encoding);
      bits = Number(BigInt("0x" + hex(await hmac(key, own))) % BigInt(m.values));
    }
    const packed = typeof bits === "number" ? le(bits, slot.size) : bits;
    const message = messageOf(survey.name, slot, c, packed);
    const print = await hmac(key, join(utf8("deniable-1/ledger"), message));
    return { slot, bits, message, noise: hex(print.subarray(0, 16)) };
  }

  // 7. The ledger

  /** Reserves the budget of the survey and notes its owner, whatever the values are, or throws. */
  function admitted(kept, today) {
    const same = kept && hex(kept.secret) === hex(secret), { name, budget, owner } = survey;
    check(same, "StoreError", "the storage was cleared: open a new client");
    const names = [...kept.spent.keys(), ...(kept.reserved?.keys() ?? [])], known = kept.owners?.get(name);
    const reserved = new Map(names.map((each) => [each, reservedOf(kept, each, today)]));
    const own = reserved.get(name) ?? [], extra = Math.max(0, budget - sumOf(own));
    const mayAnswer = known === undefined || known === owner || device.acceptOwnerChange;
    check(mayAnswer, "SurveyRefused", `survey ${name} of "${known}" was answered before, and this one is of "${owner}"`);
    const all = [...reserved.values()].flat();
    const fits = (since, limit) => sumOf(all.filter(([day]) => day >= since)) + extra <= Math.floor(limit * NANO);
    const sinceOf = (days) => new Date(Date.parse(today) - (days - 1) * DAY).toISOString().slice(0, 10);
    const fine = fits("", device.total) && (!extra || device.periods.every(([days, limit]) => fits(sinceOf(days), limit)));
    check(fine, "DeviceBudgetExceeded", `survey ${name} would exceed the budget of this device: no report was made`);
    reserved.set(name, extra ? [...own, [today, extra]] : own);
    return { ...kept, reserved, owners: new Map(kept.owners).set(name, owner) };
  }

  /** Sums are exact below 2^53; larger ones exceed every budget and limit. */
  function charged(kept, filled) {
    const { name, budget } = survey;
    const page = new Map(kept.spent.get(name));
    for (const { slot: { once, forever }, noise } of filled) {
      const [sum, limit] = page.get(noise) ?? [0, 0];
      page.set(noise, [sum + once, Math.max(limit, forever ?? Infinity)]);
    }
    const cost = spentOf(page);
    const why = survey.collect === "once" ? "has already been answered" : "would exceed its budget";
    check(cost <= budget, "BudgetExceeded", `survey ${name} ${why}: no report was made`);
    return { ...kept, spent: new Map(kept.spent).set(name, page) };
  }
}

const sumOf = (pairs) => pairs.reduce((sum, [, amount]) => sum + amount, 0);
const spentOf = (page) => [...page.values()].reduce((total, [sum, limit]) => total + Math.min(sum, limit), 0);
/** Reservations of a survey, [day, amount]. Older releases noted none: then what was spent, today. */
const reservedOf = (kept, name, today = "") =>
  kept.reserved?.get(name) ?? (kept.spent.has(name) ? [[today, spentOf(kept.spent.get(name))]] : []);

// Storage

/** Store in IndexedDB, shared by all tabs and workers of the origin. @returns {Store} */
export function browserStore() {
  const settled = (request, event) => new Promise((resolve, reject) => {
    request[event] = () => resolve(request.result);
    request.onerror = request.onabort = () => reject(failed("StoreError", request.error));
  });
  const request = indexedDB.open("deniable", 1), opened = settled(request, "onsuccess");
  request.onupgradeneeded = () => request.result.createObjectStore("kept");
  return {
    async update(key, change) {
      // Other tabs wait for this transaction; strict: it is on disk when it completes.
      const tx = (await opened).transaction("kept", "readwrite", { durability: "strict" });
      const kept = tx.objectStore("kept"), read = kept.get(key);
      let value, failure;
      read.onsuccess = () => {
        try {
          value = change(read.result);
          if (value === undefined) kept.delete(key);
          else if (value !== read.result) kept.put(value, key);
        } catch (error) {
          failure = error;
          tx.abort();
        }
      };
      await settled(tx, "oncomplete").catch((error) => { throw failure ?? error; });
      return value;
    },
    async all(prefix) {
      const kept = (await opened).transaction("kept").objectStore("kept");
      return settled(kept.getAll(IDBKeyRange.bound(prefix, prefix + "\uffff")), "onsuccess");
    },
  };
}

// Sending

/** Whether a collector will never accept the upload; others, such as captive portals, do not know. */
const isPermanent = ({ status, headers }) => [400, 404, 409, 410, 413, 415, 422].includes(status)
  && /^application\/problem\+json *(;|$)/i.test(headers.get("Content-Type") ?? "");

/**
 * Sends each report with its own key, and retries until the collector accepts it. After `days` it is
 * dropped: collectors forget keys after 7, and might count it twice.
 * @param {string} collector address, without /v1
 * @param {{store?: Store, token?: string, days?: number}} [options]
 */
export function openSender(collector, { store = browserStore(), token, days = 6 } = {}) {
  const url = collector.replace(/\/$/, "") + "/v1/reports", page = globalThis.document;
  const online = () => !page || navigator.onLine, again = () => flush().catch(() => {});
  let timer, hold = 0, /** @type {any[]} */ waiting = [];
  page?.addEventListener("visibilitychange", () => page.hidden && hide());
  if (page) addEventListener("pagehide", hide), addEventListener("online", again);
  return { send, flush };

  /** Queues a report durably, then sends it. @param {Bytes} report */
  async function send(report) {
    const key = hex(random(16)), since = Date.now();
    const upload = { key, url, body: report, since, tries: 0, after: 0, busy: 0 };
    await store.update("queue/" + key, () => upload);
    return flush();
  }

  /** Sends waiting reports until an attempt fails; `refused` are HTTP statuses of a collector. */
  async function flush() {
    /** @type {number[]} */ const statuses = [];
    const queue = (await store.all("queue/")).filter((upload) => upload.url === url), now = Date.now();
    hold = Math.max(0, ...queue.map(({ after }) => (after > now + DAY ? 0 : after)));
    waiting = queue;
    for (const upload of queue)
      if (online() && hold <= Date.now()) statuses.push(await attempt(upload));
    const left = queue.filter((upload) => !upload.done).length;
    clearTimeout(timer);
    if (left) timer = setTimeout(again, Math.max(1000, hold - Date.now()));
    const sent = statuses.filter((status) => status === 202).length;
    return { sent, refused: statuses.filter((status) => status > 0 && status !== 202), waiting: left };
  }

  /** Claims an upload, so that no other tab sends it, and sends it. */
  async function attempt(upload) {
    const now = Date.now();
    let mine;
    const kept = await store.update("queue/" + upload.key, (old) => {
      if (!old || Math.abs(now - old.since) > days * DAY) return undefined;
      if (old.busy > now && old.busy <= now + HOLD) return old;
      return (mine = { ...old, tries: old.tries + 1, busy: now + HOLD });
    });
    upload.done = !kept;
    return mine ? post(Object.assign(upload, mine)) : 0;
  }

  async function post(upload) {
    const { key, body, tries } = upload, ingest = token && { Authorization: `Bearer ${token}` };
    const headers = { "Content-Type": "application/octet-stream", "Idempotency-Key": key, ...ingest };
    upload.busy = Date.now() + HOLD;
    // Without a response (offline, timeout), the key makes a retry safe.
    const answer = await fetch(url, {
      method: "POST", body, headers, keepalive: body.length < 60_000, credentials: "omit",
      redirect: "error", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(HOLD),
    }).catch(() => null);
    const later = answer?.headers.get("Retry-After") ?? "", pause = Math.min(3_600_000, 2000 * 2 ** tries);
    const wait = Math.min(1000 * Number(later) || Date.parse(later) - Date.now() || 0, DAY);
    const after = Date.now() + Math.max(wait, pause * (0.5 + random(1)[0] / 512));
    const accepted = answer?.status === 202, done = (upload.done = accepted || (answer !== null && isPermanent(answer)));
    if (!done) hold = after;
    await store.update("queue/" + key, (old) => (done || !old ? undefined : { ...old, after, busy: 0 }));
    return done ? answer.status : 0;
  }

  /** Sends waiting reports when the page may close; they stay queued until accepted. */
  function hide() {
    for (const upload of waiting)
      if (!upload.done && Math.max(hold, upload.busy) <= Date.now())
        post(upload).catch(() => {});
  }
}

/** For testing.js and the test vectors. @type {any} */
export const steps = { clientOf, headerOf, positions, messageOf, permanent, randomise, slotsOf, tokenOf };
