/** Every output is charged before it is returned, repeated where it may be, and refused where it is not affordable. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Account,
  BudgetSpent,
  type Change,
  InvalidOption,
  Ledger,
  type LedgerOptions,
  type Mechanism,
  MemoryStore,
  type Store,
  StoreFailed,
} from "../src/index.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = 1_700_000_000_000;
const OPTIONS: LedgerOptions = { budgetPerSite: 1, windowMilliseconds: DAY, holdMilliseconds: HOUR };

/** Counts its draws: the first output is 0, the second 1, and so on. */
function counting(epsilon: number | null = 0.3, id = "counting"): Mechanism & { drawn: number } {
  const mechanism = {
    kind: "numbers" as const,
    id,
    epsilon,
    box: null,
    guarantee: "",
    disclosure: "",
    accuracyKm: null,
    drawn: 0,
    verify: async () => ({ holds: true, reason: "", checked: 0 }),
    sample: () => ({ index: mechanism.drawn, label: mechanism.drawn++, position: null, place: null }),
  };
  return mechanism;
}

/** Delegates to another store, and fails where it is told to. */
class FailingStore implements Store {
  failing = false;

  constructor(private readonly _inner: Store) {}

  read(keys: readonly string[]): Promise<readonly (Account | undefined)[]> {
    return this._inner.read(keys);
  }

  keys(): Promise<readonly string[]> {
    return this._inner.keys();
  }

  async update<Result>(
    keys: readonly string[],
    change: (accounts: readonly (Account | undefined)[]) => Change<Result>,
  ): Promise<Result> {
    if (!this.failing) return this._inner.update(keys, change);
    change(await this._inner.read(keys)); // the transaction is aborted after everything was written
    throw new StoreFailed("aborted");
  }
}

test("an output is repeated for the hold, whatever the secret, and then drawn anew", async () => {
  const ledger = await Ledger.open(new MemoryStore(), OPTIONS);
  const mechanism = counting();
  const labels = [];
  for (const [secret, hours] of [["home", 0], ["work", 0.5], ["home", 0.999], ["home", 1], ["work", 1.5]] as const) {
    labels.push((await ledger.release("a", mechanism, secret, START + hours * HOUR)).label);
  }
  assert.deepEqual(labels, [0, 0, 0, 1, 1]);
  assert.equal((await ledger.balance("a", START + 2 * HOUR)).spent, 0.6);
});

test("a spent budget repeats the last output of the window, and draws again when a charge is a window old", async () => {
  const ledger = await Ledger.open(new MemoryStore(), OPTIONS);
  const mechanism = counting();
  const labels = [];
  for (const hours of [0, 2, 4, 6, 20, 23.9, 24, 25.5]) {
    labels.push((await ledger.release("a", mechanism, 0, START + hours * HOUR)).label);
  }
  assert.deepEqual(labels, [0, 1, 2, 2, 2, 2, 3, 3]); // three charges of 0.3 fit into 1
  const { left, nextRefund } = await ledger.balance("a", START + 25 * HOUR);
  assert.ok(left < 0.11 && left > 0.09);
  assert.equal(nextRefund, START + 26 * HOUR);
});

test("without anything to repeat a spent budget refuses, and says when it will not", async () => {
  const ledger = await Ledger.open(new MemoryStore(), OPTIONS);
  for (const hours of [0, 2, 4]) await ledger.release("a", counting(), 0, START + hours * HOUR);
  const other = counting(0.3, "other");
  const refused = (affordableAt: number | null) => (error: unknown) =>
    error instanceof BudgetSpent && error.affordableAt === affordableAt;
  await assert.rejects(ledger.release("a", other, 0, START + 5 * HOUR), refused(START + DAY));
  await assert.rejects(ledger.release("a", counting(1.01, "dear"), 0, START + 5 * HOUR), refused(null));
  assert.equal(other.drawn, 0);
});

test("sites have budgets of their own, and one in all", async () => {
  const ledger = await Ledger.open(new MemoryStore(), { ...OPTIONS, budgetInAll: 0.7 });
  await ledger.release("a", counting(), 0, START);
  await ledger.release("b", counting(), 0, START);
  await assert.rejects(ledger.release("c", counting(), 0, START), BudgetSpent);
  assert.deepEqual([...(await ledger.sites())].sort(), ["a", "b"]);
  assert.ok((await ledger.balance("c", START)).left < 0.11);
});

test("a budget that is a whole number of charges is used up exactly", async () => {
  const ledger = await Ledger.open(new MemoryStore(), { ...OPTIONS, budgetPerSite: 0.5, holdMilliseconds: 0 });
  const mechanism = counting(0.125);
  for (let at = 0; at < 10; at++) await ledger.release("a", mechanism, 0, START + at);
  assert.equal(mechanism.drawn, 4);
  assert.equal((await ledger.balance("a", START + 10)).left, 0);
});

test("charges are rounded up, so that no number of them exceeds the budget", async () => {
  const ledger = await Ledger.open(new MemoryStore(), { ...OPTIONS, holdMilliseconds: 0 });
  const drawn: number[] = [];
  let now = START;
  for (const [site, epsilon] of [["a", 0.1], ["b", 1 / 3], ["c", 0.7 / 7]] as const) {
    const mechanism = counting(epsilon);
    for (let at = 0; at < 12; at++) await ledger.release(site, mechanism, 0, (now += 1));
    drawn.push(mechanism.drawn);
  }
  assert.deepEqual(drawn, [10, 2, 10]);
});

test("a store that fails releases nothing and charges nothing", async () => {
  const store = new FailingStore(new MemoryStore());
  const ledger = await Ledger.open(store, OPTIONS);
  store.failing = true;
  await assert.rejects(ledger.release("a", counting(), 0, START), StoreFailed);
  assert.equal((await ledger.balance("a", START)).spent, 0);
  assert.deepEqual(await ledger.history("a"), []);
});

test("what was drawn is stored when it is returned: a new ledger over the store repeats it", async () => {
  const store = new MemoryStore();
  const first = await (await Ledger.open(store, OPTIONS)).release("a", counting(), 0, START);
  const mechanism = counting();
  mechanism.drawn = 100;
  const second = await (await Ledger.open(store, OPTIONS)).release("a", mechanism, 0, START + 1);
  assert.deepEqual(second, first);
  assert.equal(mechanism.drawn, 100);
});

test("questions at the same time get one output and one charge", async () => {
  const ledger = await Ledger.open(new MemoryStore(), OPTIONS);
  const mechanism = counting();
  const outputs = await Promise.all(Array.from({ length: 50 }, () => ledger.release("a", mechanism, 0, START)));
  assert.deepEqual(new Set(outputs.map((output) => output.label)), new Set([0]));
  assert.equal((await ledger.history("a")).length, 1);
});

test("a clock that is set back refunds nothing, and what is drawn then counts from the latest charge", async () => {
  const ledger = await Ledger.open(new MemoryStore(), { ...OPTIONS, budgetPerSite: 0.3 });
  const mechanism = counting();
  await ledger.release("a", mechanism, 0, START);
  assert.equal((await ledger.release("a", mechanism, 0, START - 30 * DAY)).label, 0);
  await assert.rejects(ledger.release("a", counting(0.3, "other"), 0, START - 30 * DAY), BudgetSpent);
});

test("the history has what was released, the latest first, and never the secret", async () => {
  const store = new MemoryStore();
  const ledger = await Ledger.open(store, { ...OPTIONS, budgetPerSite: 1000, holdMilliseconds: 0 });
  const mechanism = counting(0.5);
  for (let at = 0; at < 300; at++) await ledger.release("a", mechanism, "secret-9f3", START + at * DAY);
  const history = await ledger.history("a");
  assert.deepEqual(history.slice(0, 2).map(({ at, epsilon, output }) => [at, epsilon, output.label]), [
    [START + 299 * DAY, 0.5, 299],
    [START + 298 * DAY, 0.5, 298],
  ]);
  assert.equal(history.length, 201);
  assert.doesNotMatch(JSON.stringify(await store.read(["site a", "all"])), /secret-9f3/);
});

test("a site cannot take the name of the account of all sites", async () => {
  const ledger = await Ledger.open(new MemoryStore(), { ...OPTIONS, budgetInAll: 0.4 });
  await ledger.release("all", counting(), 0, START);
  assert.deepEqual(await ledger.sites(), ["all"]);
  await assert.rejects(ledger.release("b", counting(), 0, START), BudgetSpent);
});

test("options and mechanisms that cannot be counted are refused", async () => {
  const store = new MemoryStore();
  for (const budgetPerSite of [Number.NaN, -1, Infinity]) {
    await assert.rejects(Ledger.open(store, { budgetPerSite }), InvalidOption);
  }
  await assert.rejects(Ledger.open(store, { budgetPerSite: 1, windowMilliseconds: 0 }), InvalidOption);
  const ledger = await Ledger.open(store, OPTIONS);
  await assert.rejects(ledger.release("a", counting(null), 0, START), InvalidOption);
  await assert.rejects(ledger.release("a", counting(), 0, Number.NaN), InvalidOption);
});
