/** A million draws fit the weights, and random bits are used as they should be. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../src/index.js";
import { exponentialBelow, PRECISION } from "../src/exact.js";
import { drawFromRow, geometric, roundAtRandom, shareUnits, uniformBelow } from "../src/sampling.js";
import { vector } from "./files.js";

/** A value that the chi-square statistic exceeds with a probability of about 10^-9 (Wilson and Hilferty). */
export function rareChiSquare(freedom: number): number {
  const spread = 2 / (9 * freedom);
  return freedom * (1 - spread + 6 * Math.sqrt(spread)) ** 3;
}

export function chiSquare(counts: readonly number[], shares: readonly number[]): number {
  const draws = counts.reduce((sum, count) => sum + count, 0);
  return counts.reduce((sum, count, at) => sum + (count - draws * shares[at]!) ** 2 / (draws * shares[at]!), 0);
}

/** The probabilities of the outputs of a mechanism for a secret, by weights that are read from the file here. */
function rowShares(file: Uint8Array, rows: number, columns: number, row: number): number[] {
  const start = file.length - 32 - 8 * rows * columns + 8 * row * columns;
  const view = new DataView(file.buffer, file.byteOffset);
  return Array.from({ length: columns }, (_, at) => Number(view.getBigUint64(start + 8 * at, true)) / 2 ** 62);
}

/** Random bytes of the system, asked for in large blocks: that is what takes most of the time. */
function systemBlocks(): (count: number) => Uint8Array {
  let block = new Uint8Array(0);
  let at = 0;
  return (count) => {
    if (at + count > block.length) {
      block = crypto.getRandomValues(new Uint8Array(65_536));
      at = 0;
    }
    at += count;
    return block.subarray(at - count, at);
  };
}

test("a million outputs from the system's randomness fit the weights", async () => {
  const { file } = vector("grid");
  const mechanism = await open(file);
  const counts = new Array<number>(6).fill(0);
  const secret = { latitude: 46.45, longitude: 6.6 }; // the second cell
  const source = systemBlocks();
  for (let draw = 0; draw < 1_000_000; draw++) counts[mechanism.sample(secret, source).index!]! += 1;
  assert.ok(chiSquare(counts, rowShares(file, 6, 6, 1)) < rareChiSquare(5));
});

test("a point between control points has the mean of their distributions", async () => {
  const { file } = vector("points-line"); // three cells of degree 3 from -2 to 22: control points 0 to 9
  const mechanism = await open(file);
  const draws = 300_000;
  const counts = new Array<number>(4).fill(0);
  const source = systemBlocks();
  for (let draw = 0; draw < draws; draw++) counts[mechanism.sample(0, source).index!]! += 1; // a quarter into the first cell
  const binomial = [27, 27, 9, 1].map((share) => share / 64);
  const rows = [0, 1, 2, 3].map((row) => rowShares(file, 10, 4, row));
  const shares = [0, 1, 2, 3].map((output) => rows.reduce((sum, row, at) => sum + binomial[at]! * row[output]!, 0));
  assert.ok(chiSquare(counts, shares) < rareChiSquare(3));
});

test("the first output whose cumulative weight exceeds the random bits is drawn", () => {
  const row = BigUint64Array.from([0n, 1n, 0n, 2n ** 52n - 1n]);
  const word = (uniform: bigint): bigint => uniform << 12n;
  assert.deepEqual([0n, 1n, 2n ** 52n - 1n].map((uniform) => drawFromRow(row, 52, word(uniform))), [1, 3, 3]);
});

test("uniform integers are uniform, and rejected only where they must be", () => {
  const counts = new Array<number>(6).fill(0);
  for (let byte = 0; byte < 256; byte++) {
    let asked = 0;
    const source = (count: number): Uint8Array => new Uint8Array(count).fill(asked++ === 0 ? byte : 0);
    const value = Number(uniformBelow(6n, source));
    if (asked === 1) counts[value]! += 1;
  }
  assert.deepEqual(counts, [32, 32, 32, 32, 32, 32]); // of each 8 patterns of 3 bits, two are rejected
});

test("geometric noise stops with the probability given", () => {
  const counts = [0, 0, 0, 0];
  const bytes = systemBlocks();
  for (let draw = 0; draw < 40_000; draw++) counts[Math.min(geometric(4n, bytes), 3)]! += 1;
  assert.ok(chiSquare(counts, [1 / 4, 3 / 16, 9 / 64, 27 / 64]) < rareChiSquare(3));
});

test("shares are rounded as NumPy rounds them, halves to the even unit", () => {
  assert.deepEqual([0.5, 1.5, 2.5].map((units) => shareUnits(units / 2 ** 24)), [0, 2, 2]);
  assert.deepEqual([-1, 2].map(shareUnits), [0, 2 ** 24]);
});

test("rounding at random goes up with the probability of the fraction", () => {
  const source = (uniform: number) => () => Uint8Array.from([uniform & 255, (uniform >> 8) & 255, uniform >> 16]);
  const quarter = 2 ** 22;
  assert.deepEqual([roundAtRandom(-1.75, source(quarter - 1)), roundAtRandom(-1.75, source(quarter))], [-1, -2]);
});

test("exponentials are rounded down, by next to nothing", () => {
  // e and e^50, times 10^39
  const known: [bigint, bigint][] = [
    [1n, 2718281828459045235360287471352662497757n],
    [50n, 5184705528587072464087453322933485384827469100583846401904056n],
  ];
  for (const [x, digits] of known) {
    const scaled = (exponentialBelow({ integer: x, exponent: 0 }) * 10n ** 39n) >> PRECISION;
    const difference = digits - scaled;
    assert.ok(difference >= -(10n ** 12n) && difference * 10n ** 36n < digits, `e^${x}`);
  }
  assert.equal(exponentialBelow({ integer: 0n, exponent: 0 }), 1n << PRECISION);
});
