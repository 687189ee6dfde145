/** The bundle is small, and asks nothing of the network or of a weak source of randomness. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PACKAGE, plain, given, vector } from "./files.js";

const MOST_BYTES = 30_000;

test("the bundle has at most 30 kB", () => {
  const bundle = readFileSync(new URL("dist/index.js", PACKAGE));
  assert.ok(bundle.length <= MOST_BYTES, `${bundle.length} bytes`);
});

test("nothing in the bundle reaches the network, evaluates text, or draws from Math.random", () => {
  for (const file of ["dist/index.js", "dist/worker.js"]) {
    const text = readFileSync(new URL(file, PACKAGE), "utf8");
    assert.doesNotMatch(text, /Math\.random|fetch\(|XMLHttpRequest|WebSocket|eval\(|Function\(|https?:/, file);
  }
});

test("the bundle draws what the source draws", async () => {
  const bundled = (await import(new URL("dist/index.js", PACKAGE).href)) as typeof import("../src/index.js");
  for (const name of ["grid", "points", "sets"]) {
    const { file, draws } = vector(name);
    const mechanism = await bundled.open(file);
    for (const draw of draws) assert.deepEqual(plain(mechanism.sample(draw.secret, given(draw.random))), draw.output);
  }
});
