import type { Mechanism } from "./types.js";

/**
 * Read a mechanism file: its structure, limits, sums of weights and digest are checked, its ratios are not.
 *
 * @throws InvalidFile
 */
export async function open(_bytes: Uint8Array): Promise<Mechanism> {
  throw new Error("not written yet");
}
