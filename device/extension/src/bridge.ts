/**
 * Stands between a page and the service worker, in a world of its own that the page cannot reach. It passes on questions
 * without content: who asks, the browser tells the service worker.
 */
import { HANDSHAKE, type Answer, type Question } from "./channel.js";
import type { Request, Reply } from "./messages.js";

const DENIED: Reply = { kind: "failed", code: 1 };
const UNAVAILABLE: Reply = { kind: "failed", code: 2 };

/** How often a question is put again to a service worker that was stopped before it answered. A stored answer is repeated. */
const ATTEMPTS = 4;

/** Whether this document may ask at all: it is secure, and no policy of the page that embeds it forbids it. */
function mayAsk(): boolean {
  const { featurePolicy } = document as Document & { featurePolicy?: { allowsFeature(name: string): boolean } };
  if (!window.isSecureContext) return false;
  if (featurePolicy !== undefined) return featurePolicy.allowsFeature("geolocation");
  try {
    return window.top === window || (window.top as Window).document !== undefined; // without policies: frames of the same origin
  } catch {
    return false;
  }
}

async function visible(): Promise<void> {
  while (document.visibilityState === "hidden") {
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

async function request(message: Request): Promise<Reply> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      const reply = (await chrome.runtime.sendMessage(message)) as Reply | undefined;
      if (reply !== undefined) return reply;
    } catch {
      // The service worker was stopped before it answered, or the extension is gone.
    }
  }
  return UNAVAILABLE;
}

let current: Promise<Reply> | undefined;

/** One question at a time, however many a page puts. */
function position(): Promise<Reply> {
  current ??= visible()
    .then(() => request("position"))
    .finally(() => {
      current = undefined;
    });
  return current;
}

function toAnswer(id: number, reply: Reply): Answer {
  if (reply.kind === "told") return [id, "told", reply.latitude, reply.longitude, reply.accuracy, reply.timestamp];
  if (reply.kind === "mode") return [id, "mode", reply.mode];
  return reply.kind === "native" ? [id, "native"] : [id, "failed", reply.code];
}

/** A question; null for whatever else a page that has taken the port may send. */
function toQuestion(data: unknown): Question | null {
  if (!Array.isArray(data) || typeof data[0] !== "number") return null;
  return data[1] === "position" || data[1] === "mode" ? [data[0], data[1]] : null;
}

async function answer([id, asked]: Question): Promise<Answer> {
  if (!mayAsk()) return asked === "mode" ? [id, "mode", "refuse"] : toAnswer(id, DENIED);
  return toAnswer(id, await (asked === "mode" ? request("mode") : position()));
}

window.addEventListener(
  HANDSHAKE,
  (event) => {
    event.stopImmediatePropagation();
    const port = (event as MessageEvent).ports[0];
    if (port === undefined) return;
    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      const question = toQuestion(data);
      if (question !== null) void answer(question).then((reply) => port.postMessage(reply));
    };
  },
  { once: true, capture: true },
);
