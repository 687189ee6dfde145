/** The worker that `verifyInWorker` starts: it is sent the bytes of a file, and sends its verdict. */

import { InvalidFile } from "./errors.js";
import { open } from "./open.js";
import type { WorkerMessage } from "./verify-in-worker.js";

const send = (message: WorkerMessage): void => self.postMessage(message);

self.onmessage = async ({ data }: MessageEvent<Uint8Array>) => {
  try {
    const mechanism = await open(data);
    send({ verdict: await mechanism.verify((progress) => send({ progress })) });
  } catch (error) {
    if (!(error instanceof InvalidFile)) throw error; // reaches onerror
    send({ invalid: error.message });
  }
};
