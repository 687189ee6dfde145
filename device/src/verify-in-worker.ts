import type { Progress, Verdict } from "./types.js";

/**
 * Verify a file in a worker, so that a page stays responsive; where there are no workers, in this thread, in slices.
 *
 * @param makeWorker makes a worker that runs `privacygames-device/worker`; by default the file `worker.js` beside this one.
 * @throws InvalidFile
 */
export async function verifyInWorker(
  _bytes: Uint8Array,
  _onProgress?: Progress,
  _makeWorker?: () => Worker,
): Promise<Verdict> {
  throw new Error("not written yet");
}
