// Every request of the page goes through here, to this very server and nowhere else.
let token = "";
let askToken = null;

export class ApiError extends Error {
  constructor(error, code) {
    super(error.message);
    this.kind = error.kind;
    this.status = error.status;
    this.limit = error.limit;
    this.bound = error.bound;
    this.code = code;
  }
}

export function onTokenNeeded(ask) { askToken = ask; }
export function useToken(given) { token = given; }

export async function ask(method, path, body, { raw = false, bytes = false, keepalive = false } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = raw ? "application/octet-stream" : "application/json";
  const content = body === undefined ? undefined : raw ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(`/api/${path}`, { method, headers, body: content, keepalive, credentials: "omit" });
  } catch {
    throw new ApiError({ kind: "Unreachable", status: "UNREACHABLE", message: "The server does not answer: is it still running?" }, 0);
  }
  if (answer.ok) return bytes ? answer.blob() : answer.json();
  const told = await answer.json().catch(() => ({ error: { kind: "Error", status: "ERROR", message: `The server answered ${answer.status}.` } }));
  if ((answer.status === 401 || told.error.status === "TOKEN_WAIT") && askToken) askToken();
  throw new ApiError(told.error, answer.status);
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);

const starting = new Set();
export function startJob(body) {
  const begun = post("jobs", body);
  starting.add(begun);
  begun.catch(() => {}).finally(() => starting.delete(begun));
  return begun;
}
export const allStarted = () => Promise.allSettled([...starting]); // until then what jobs are about must not be forgotten
export const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

export async function finished(job, tell, stopped = () => false) {
  // Ask for a job until it is over; `tell` is called with each answer. Slower while nobody looks.
  for (;;) {
    if (stopped()) return null; // forgotten with what it was about
    const now = await get(`jobs/${job}`);
    if (stopped()) return null;
    tell(now);
    if (now.state === "done" || now.state === "cancelled") return now;
    if (now.state === "failed") throw new ApiError(now.error, 200);
    await pause(document.hidden ? 2000 : 250);
  }
}
