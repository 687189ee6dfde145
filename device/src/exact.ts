/** Exact numbers: floats as integers times powers of two, and exponentials rounded down. */

/** An exact number: `integer` times two to the power of `exponent`. */
export interface Dyadic {
  readonly integer: bigint;
  readonly exponent: number;
}

const SCRATCH = new DataView(new ArrayBuffer(8));

/** A finite float that is not negative, exactly. */
export function dyadic(value: number): Dyadic {
  SCRATCH.setFloat64(0, value);
  const bits = SCRATCH.getBigUint64(0);
  const exponent = Number(bits >> 52n);
  const fraction = bits & ((1n << 52n) - 1n);
  return exponent === 0
    ? { integer: fraction, exponent: -1074 }
    : { integer: fraction | (1n << 52n), exponent: exponent - 1075 };
}

export function times(a: Dyadic, b: Dyadic): Dyadic {
  return { integer: a.integer * b.integer, exponent: a.exponent + b.exponent };
}

export function plus(a: Dyadic, b: Dyadic): Dyadic {
  const exponent = Math.min(a.exponent, b.exponent);
  return { integer: scaled(a, exponent) + scaled(b, exponent), exponent };
}

export function atMost(a: Dyadic, b: Dyadic): boolean {
  const exponent = Math.min(a.exponent, b.exponent);
  return scaled(a, exponent) <= scaled(b, exponent);
}

function scaled(a: Dyadic, exponent: number): bigint {
  return a.integer << BigInt(a.exponent - exponent);
}

/** Bits after the binary point of exponentials. */
export const PRECISION = 256n;
const ONE = 1n << PRECISION;
const HALVINGS = 16n;

/** Exponent above which a ratio of 62-bit integers can only fail where one of them is 0. */
export const LARGEST_EXPONENT = 50;

/** A whole number below 2^256·e^x, and that itself for x = 0: every step rounds down. `x` is from 0 to some hundreds. */
export function exponentialBelow(x: Dyadic): bigint {
  const shift = BigInt(x.exponent) + PRECISION - HALVINGS;
  const y = shift >= 0n ? x.integer << shift : x.integer >> -shift;
  let sum = ONE;
  let term = ONE;
  for (let n = 1n; term > 0n; n += 1n) {
    term = ((term * y) >> PRECISION) / n;
    sum += term;
  }
  for (let n = 0n; n < HALVINGS; n += 1n) sum = (sum * sum) >> PRECISION;
  return sum;
}

/** ln 2 in two parts: the first has 32 bits, so that its whole multiples are exact. */
const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
/** Degree of Taylor's polynomial. */
const DEGREE = 13;

/**
 * A float below e^x for x = epsilon·distance, or below e^50 if that is less, by a relative 2^-40 at most.
 *
 * The arithmetic and its error bound, 2^-42, are those of `certificates/exponentials.py`.
 */
export function roughExponentialBelow(epsilon: number, distance: number): number {
  const x = Math.min(epsilon * distance, LARGEST_EXPONENT);
  const doublings = Math.round(x / Math.LN2);
  const remainder = x - doublings * LN2_HIGH - doublings * LN2_LOW;
  let value = 1;
  for (let power = DEGREE; power > 0; power--) value = (value * remainder) / power + 1;
  return value * 2 ** doublings * (1 - 2 ** -41);
}
