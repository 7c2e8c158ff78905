// Requests to the collector, with the token of this tab; the token is forgotten with the tab.
const KEY = "deniable-token";

export const token = () => sessionStorage.getItem(KEY);
export const remember = (text) => sessionStorage.setItem(KEY, text);
export const forget = () => sessionStorage.removeItem(KEY);

/** The collector refused a request; `status` is 0 if it did not answer. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** A message of the collector as a sentence. */
export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

async function ask(path, { method = "GET", body } = {}) {
  const headers = { Authorization: `Bearer ${token() ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method, headers, credentials: "omit", cache: "no-store", redirect: "error" };
  const answer = await fetch(path, { ...options, body: body && JSON.stringify(body) })
    .catch(() => { throw new Refused(0, "The collector does not answer. Is it running? This page tries again every few seconds."); });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.detail ? sentence(problem.detail) : `The collector refused the request (status ${answer.status}).`);
}

export const json = async (path, options) => (await ask(path, options)).json();
export const text = async (path) => (await ask(path)).text();
export const remove = (path) => ask(path, { method: "DELETE" });

/** Save a response as a file; a link could not carry the token. */
export async function download(path) {
  const answer = await ask(path), url = URL.createObjectURL(await answer.blob());
  const name = /filename="(.+)"/.exec(answer.headers.get("content-disposition"))[1];
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
