/** Verification in a worker. */

import { InvalidFile } from "./errors.js";
import { open } from "./open.js";
import type { Progress, Verdict } from "./types.js";

/** What the worker sends: its progress, its verdict, or why the file is none. */
export type WorkerMessage =
  | { readonly progress: number }
  | { readonly verdict: Verdict }
  | { readonly invalid: string };

/**
 * Verify a file in a worker, so that a page stays responsive; where there are no workers, in this thread, in slices.
 *
 * @param makeWorker makes a worker that runs `privacygames-device/worker`; by default the file `worker.js` beside this one.
 * @throws InvalidFile
 */
export async function verifyInWorker(
  bytes: Uint8Array,
  onProgress?: Progress,
  makeWorker?: () => Worker,
): Promise<Verdict> {
  if (makeWorker === undefined && typeof Worker === "undefined") return (await open(bytes)).verify(onProgress);
  const worker = makeWorker?.() ?? new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  try {
    return await new Promise<Verdict>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
        if ("progress" in data) onProgress?.(data.progress);
        else if ("verdict" in data) resolve(data.verdict);
        else reject(new InvalidFile(data.invalid));
      };
      worker.onerror = () => reject(new Error("the worker that verifies files failed"));
      worker.postMessage(bytes);
    });
  } finally {
    worker.terminate();
  }
}
