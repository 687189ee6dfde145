/** Exact sampling: random bits are compared with integers, and no floating-point number decides anything. */

import type { RandomBytes } from "./types.js";

/** Random bytes from the operating system. */
export const systemBytes: RandomBytes = (count) => crypto.getRandomValues(new Uint8Array(count));

/**
 * The number of the output that 64 random bits choose from weights that sum to two to the power of `bits`: the first
 * whose cumulative weight exceeds the leading bits. All weights are read, whichever it is.
 */
export function drawFromRow(row: BigUint64Array, bits: number, word: bigint): number {
  const uniform = word >> BigInt(64 - bits);
  let total = 0n;
  let output = 0;
  for (let index = 0; index < row.length; index++) {
    total += row[index]!;
    output += total <= uniform ? 1 : 0;
  }
  return output;
}

/** The word of 64 bits at this place, little-endian. */
export function wordAt(bytes: Uint8Array, place: number): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(8 * place, true);
}

/** A uniform whole number below a limit, by rejection. */
export function uniformBelow(limit: bigint, random: RandomBytes): bigint {
  const bits = limit.toString(2).length;
  const bytes = Math.ceil(bits / 8);
  const excess = BigInt(8 * bytes - bits);
  for (;;) {
    let value = 0n;
    for (const byte of random(bytes)) value = (value << 8n) | BigInt(byte);
    value >>= excess;
    if (value < limit) return value;
  }
}

/** The number of successes, each of probability (d − 1)/d, before the first failure. */
export function geometric(d: bigint, random: RandomBytes): number {
  let successes = 0;
  while (uniformBelow(d, random) !== 0n) successes++;
  return successes;
}

/** Bits of the random integers that choose between neighbouring points of a lattice. */
export const SHARE_BITS = 24;

/** The share as a whole number of units of 2^-24, as `numpy.rint` rounds: halves go to the even one. */
export function shareUnits(share: number): number {
  const value = share * 2 ** SHARE_BITS;
  const rounded = Math.round(value);
  const units = rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
  return Math.min(Math.max(units, 0), 2 ** SHARE_BITS);
}

/** One of the two whole numbers around a number, at random, so that the mean is the number within 2^-25. */
export function roundAtRandom(value: number, random: RandomBytes): number {
  const low = Math.floor(value);
  const bytes = random(3);
  const uniform = bytes[0]! | (bytes[1]! << 8) | (bytes[2]! << 16);
  return low + (uniform < shareUnits(value - low) ? 1 : 0);
}

/** The smallest of these distances within which the share of the weights lies. */
export function quantile(distances: Float64Array, weights: ArrayLike<number>, share: number): number {
  const order = Array.from(distances.keys()).sort((a, b) => distances[a]! - distances[b]!);
  let total = 0;
  for (let index = 0; index < weights.length; index++) total += weights[index]!;
  let reached = 0;
  for (const index of order) {
    reached += weights[index]!;
    if (reached >= share * total) return distances[index]!;
  }
  return distances[order[order.length - 1]!]!;
}

/** Yields to other tasks now and then, so that a page stays responsive. */
export class Pacer {
  private _last = Date.now();

  async pause(share: number, onProgress: ((share: number) => void) | undefined): Promise<void> {
    if (Date.now() - this._last < 40) return;
    onProgress?.(share);
    await new Promise((resolve) => setTimeout(resolve, 0));
    this._last = Date.now();
  }
}
