// All requests of the page; they go to the server of the page only.
let token = "";
let askToken = null;

export class ApiError extends Error {
  constructor(error, code) {
    super(error.message);
    this.kind = error.kind;
    this.status = error.status;
    this.limit = error.limit;
    this.bound = error.bound;
    this.field = error.field;
    this.code = code;
  }
}

export function onTokenNeeded(ask) { askToken = ask; }
export function useToken(value) { token = value; }

export async function ask(method, path, content, { raw = false, bytes = false, keepalive = false } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (content !== undefined) headers["Content-Type"] = raw ? "application/octet-stream" : "application/json";
  const payload = content === undefined ? undefined : raw ? content : JSON.stringify(content);
  let response;
  try {
    response = await fetch(`/api/${path}`, { method, headers, body: payload, keepalive, credentials: "omit" });
  } catch {
    throw new ApiError({ kind: "Unreachable", status: "UNREACHABLE", message: "The server does not respond: is it still running?" }, 0);
  }
  if (response.ok) return bytes ? response.blob() : response.json();
  const body = await response.json().catch(() => ({ error: { kind: "Error", status: "ERROR", message: `The server responded with status ${response.status}.` } }));
  if ((response.status === 401 || body.error.status === "TOKEN_WAIT") && askToken) askToken();
  throw new ApiError(body.error, response.status);
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);

const starting = new Set();
export function start(path, body) {
  // What a request is about is not forgotten before it has been answered.
  const request = post(path, body);
  starting.add(request);
  request.catch(() => {}).finally(() => starting.delete(request));
  return request;
}
export const startJob = (body) => start("jobs", body);
export const allStarted = () => Promise.allSettled([...starting]); // wait for this before forgetting what they are about
export const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export async function finished(job, onProgress, stopped = () => false) {
  // Poll a job until it is over, less often while the page is hidden; `onProgress` is called with each of its states.
  for (;;) {
    if (stopped()) return null; // forgotten with its problem
    const now = await get(`jobs/${job}`);
    if (stopped()) return null;
    onProgress(now);
    if (now.state === "done" || now.state === "cancelled") return now;
    if (now.state === "failed") throw new ApiError(now.error, 200);
    await pause(document.hidden ? 2000 : 250);
  }
}
