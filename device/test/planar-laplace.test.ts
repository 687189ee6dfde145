/** The built-in default: verified on its integers, drawn exactly, anywhere on the Earth. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidOption, planarLaplace, type Position, UnknownSecret } from "../src/index.js";

const RADIUS_KM = 6371.0088;
const OPTIONS = { epsilonPerKm: 4, latticeMetres: 25, radiusKm: 2 };

function distance(a: Position, b: Position): number {
  const radians = Math.PI / 180;
  const half = (x: number): number => Math.sin((x * radians) / 2) ** 2;
  const chord =
    half(a.latitude - b.latitude) +
    Math.cos(a.latitude * radians) * Math.cos(b.latitude * radians) * half(a.longitude - b.longitude);
  return 2 * RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(chord)));
}

for (const [epsilonPerKm, latticeMetres, radiusKm] of [
  [4, 12.5, 2],
  [4, 50, 3],
  [Math.log(4) / 0.2, 10, 1],
  [0.2, 250, 30],
  [1000, 0.5, 0.001],
  [100, 0.2, 1],
] as const) {
  test(`ε = ${epsilonPerKm} per km on ${latticeMetres} m verifies`, async () => {
    const verdict = await planarLaplace({ epsilonPerKm, latticeMetres, radiusKm }).verify();
    assert.equal(verdict.holds, true, verdict.reason);
  });
}

for (const [name, latitude, longitude] of [
  ["Lausanne", 46.5197, 6.6323],
  ["the north pole", 90, 0],
  ["beside the south pole", -89.9999, 123],
  ["the date line", 0.001, 180],
  ["beside the date line", -17.7, -179.9999],
] as const) {
  test(`noise at ${name} has the right size, and no direction`, () => {
    const mechanism = planarLaplace(OPTIONS);
    const secret = { latitude, longitude };
    const draws = 3000;
    let total = 0;
    let within = 0;
    const mean = [0, 0, 0];
    for (let draw = 0; draw < draws; draw++) {
      const position = mechanism.sample(secret).position!;
      assert.ok(Math.abs(position.latitude) <= 90 && Math.abs(position.longitude) <= 180);
      const away = distance(secret, position);
      total += away;
      within += away <= mechanism.accuracyKm! ? 1 : 0;
      const [phi, lambda] = [(position.latitude * Math.PI) / 180, (position.longitude * Math.PI) / 180];
      const point = [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
      point.forEach((x, axis) => (mean[axis]! += (x * RADIUS_KM) / draws));
    }
    // Planar Laplace noise has the mean 2/ε = 500 m; its standard deviation is √2/ε, so the mean's is 6.5 m.
    assert.ok(Math.abs(total / draws - 0.54) < 0.06, `${total / draws}`);
    assert.ok(within / draws > 0.93, `${within / draws}`);
    const [phi, lambda] = [(latitude * Math.PI) / 180, (longitude * Math.PI) / 180];
    const truth = [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
    const bias = Math.hypot(...truth.map((x, axis) => x * RADIUS_KM - mean[axis]!));
    assert.ok(bias < 0.07, `${bias}`); // the standard deviation along each axis is √3/ε/√3000 = 8 m
  });
}

test("outputs of two points near each other have nearly the same distribution", () => {
  const mechanism = planarLaplace({ epsilonPerKm: 1, latticeMetres: 100, radiusKm: 8 });
  const draws = 20_000;
  const counts = [46.5, 46.509].map((latitude) => {
    let north = 0;
    for (let draw = 0; draw < draws; draw++) {
      north += mechanism.sample({ latitude, longitude: 6.6 }).position!.latitude > 46.5045 ? 1 : 0;
    }
    return north / draws;
  }) as [number, number];
  // 1 km apart: the odds may differ by a factor of e, and six standard deviations of 20,000 draws are 0.02.
  assert.ok(counts[1] > counts[0] && counts[1] <= Math.E * counts[0] + 0.02);
  assert.ok(counts[1] - counts[0] > 0.2); // and it is not constant
});

test("what is told of it says nothing of a place, and is the same for the same parameters", () => {
  const [one, other] = [planarLaplace(OPTIONS), planarLaplace(OPTIONS)];
  assert.equal(one.id, other.id);
  assert.notEqual(one.id, planarLaplace({ ...OPTIONS, radiusKm: 3 }).id);
  assert.deepEqual([one.kind, one.box, one.epsilon], ["points", null, 4]);
  assert.equal(one.guarantee, "ε = 4 per km between any two points of the Earth");
});

test("parameters and secrets that make no sense are refused", () => {
  for (const wrong of [{ epsilonPerKm: 0 }, { epsilonPerKm: Number.NaN }, { latticeMetres: 1000 }, { radiusKm: 0 }]) {
    assert.throws(() => planarLaplace({ ...OPTIONS, ...wrong }), InvalidOption);
  }
  const mechanism = planarLaplace(OPTIONS);
  for (const wrong of [{ latitude: 91.2345, longitude: 0 }, { x: 1, y: 2 }, "home", { latitude: 1, longitude: 1e999 }]) {
    assert.throws(() => mechanism.sample(wrong), (error) => error instanceof UnknownSecret && !/2345/.test(error.message));
  }
});

/** What brute force needs to know of a mechanism: the integers of its noise. */
interface Inner {
  readonly _step: number;
  readonly _kernel: {
    readonly _size: number;
    readonly _stop: bigint;
    _weight(i: number, j: number): bigint;
  };
}

/** ln w(i, j), beyond the table as well. */
function logWeight({ _kernel }: Inner, i: number, j: number): number {
  const inside = [i, j].map((at) => Math.min(Math.abs(at), _kernel._size)) as [number, number];
  const beyond = Math.abs(i) + Math.abs(j) - inside[0] - inside[1];
  return Math.log(Number(_kernel._weight(...inside))) + beyond * Math.log(1 - 1 / Number(_kernel._stop));
}

/** ln p(o|x) up to a constant, for an output at 0: the point is rounded at random to the corners of its cell. */
function logDensity(inner: Inner, x: number, y: number): number {
  const [i, j] = [Math.floor(x), Math.floor(y)];
  const corners = [0, 1].flatMap((a) => [0, 1].map((b) => [a, b] as const));
  const middle = logWeight(inner, i, j);
  const sum = corners.reduce((total, [a, b]) => {
    const share = (a === 1 ? x - i : 1 - x + i) * (b === 1 ? y - j : 1 - y + j);
    return total + share * Math.exp(logWeight(inner, i + a, j + b) - middle);
  }, 0);
  return middle + Math.log(sum);
}

test("by brute force, no two points are told apart more than epsilon allows, within the table and beyond", () => {
  let seed = 12345;
  const uniform = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (const options of [OPTIONS, { epsilonPerKm: 1, latticeMetres: 400, radiusKm: 3 }]) {
    const inner = planarLaplace(options) as unknown as Inner;
    const epsilon = (options.epsilonPerKm * 31) / 32;
    let largest = 0;
    for (let pair = 0; pair < 60_000; pair++) {
      const reach = [1, 4, inner._kernel._size, 1.5 * inner._kernel._size][pair % 4]!;
      const [x, y] = [(2 * uniform() - 1) * reach, (2 * uniform() - 1) * reach];
      const [angle, away] = [2 * Math.PI * uniform(), 10 ** (3 * uniform() - 3)];
      const [other, across] = [x + away * Math.cos(angle), y + away * Math.sin(angle)];
      const ratio = Math.abs(logDensity(inner, x, y) - logDensity(inner, other, across));
      largest = Math.max(largest, ratio / (epsilon * away * inner._step));
    }
    assert.ok(largest <= 1 + 1e-6, `${largest}`);
    assert.ok(largest > 0.95, `${largest}`); // and epsilon is used
  }
});
