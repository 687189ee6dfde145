/** The same random bytes give the same outputs as in Python, and every file that Python wrote verifies. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidFile, open, UnknownSecret } from "../src/index.js";
import { given, plain, resealed, vector, vectors } from "./files.js";

for (const { name, digest, file, draws } of vectors()) {
  test(`${name}: the same outputs as in Python`, async () => {
    const mechanism = await open(file);
    assert.equal(mechanism.id, digest);
    for (const draw of draws) assert.deepEqual(plain(mechanism.sample(draw.secret, given(draw.random))), draw.output);
  });

  test(`${name}: verifies`, async () => {
    const shares: number[] = [];
    const verdict = await (await open(file)).verify((share) => shares.push(share));
    assert.equal(verdict.holds, true, verdict.reason);
    assert.ok(verdict.checked > 0);
    assert.equal(shares.at(-1), 1);
  });

  test(`${name}: every truncation and every changed byte is refused`, async () => {
    for (let length = 0; length < file.length; length += Math.ceil(file.length / 50)) {
      await assert.rejects(open(file.slice(0, length)), InvalidFile);
      const changed = file.slice();
      changed[length]! ^= 1;
      await assert.rejects(open(changed), InvalidFile);
    }
  });

  test(`${name}: a smaller epsilon does not verify`, async () => {
    const at = file.indexOf(10, file.indexOf(10) + 1) + 3; // after both lines, the kind and the bits
    const smaller = await resealed(file, (content) => {
      const view = new DataView(content.buffer, content.byteOffset);
      view.setFloat64(at, view.getFloat64(at, true) / 64, true);
    });
    const verdict = await (await open(smaller)).verify();
    assert.equal(verdict.holds, false);
  });
}

test("secrets of another kind are refused, and not repeated", async () => {
  const asked: [string, unknown][] = [
    ["grid", { x: 12.34567, y: 1 }],
    ["grid", { latitude: 91.34567, longitude: 0 }],
    ["grid", "cell-1"],
    ["points", { latitude: Number.NaN, longitude: 6.5 }],
    ["points-line", "12.34567"],
    ["numbers", 12.34567],
    ["categories", "12.34567"],
    ["sets", ["12.34567"]],
    ["sets", { latitude: 1, longitude: 1 }],
  ];
  for (const [name, secret] of asked) {
    const mechanism = await open(vector(name).file);
    assert.throws(
      () => mechanism.sample(secret as never),
      (error) => error instanceof UnknownSecret && !/34567|cell-1/.test(error.message),
    );
  }
});

test("sets are found in any order, with members given twice", async () => {
  const mechanism = await open(vector("sets").file);
  const random = given("00".repeat(64));
  assert.deepEqual(mechanism.sample(["Brazil", "Alien", "Brazil"], random), mechanism.sample(["Alien", "Brazil"], random));
});

test("guarantees say between what", async () => {
  const guarantee = async (name: string): Promise<string> => (await open(vector(name).file)).guarantee;
  assert.match(await guarantee("grid"), /^ε = 1 per km between any two cells; not between coordinates/);
  assert.match(await guarantee("points"), /^ε = 8 per km between any two points$/);
  assert.match(await guarantee("numbers-within"), /^ε = 4 between secrets at most 12 years apart$/);
  assert.match(await guarantee("grid-labels"), /counted in the distances that the file gives/);
});

test("the accuracy is that of the worst secret", async () => {
  const accuracy = (await open(vector("points").file)).accuracyKm!;
  assert.ok(accuracy > 9 && accuracy < 30, `${accuracy}`);
  assert.equal((await open(vector("numbers").file)).accuracyKm, null);
});
