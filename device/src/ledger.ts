/** The ledger: what was released to whom, and what is left of each budget. */

import { BudgetSpent, InvalidOption } from "./errors.js";
import { systemBytes } from "./sampling.js";
import type { Account, Change, Entry, Store } from "./store.js";
import type { Mechanism, Output, RandomBytes, Secret } from "./types.js";

/** The rules of a ledger. Epsilons are in the unit of the mechanisms': per kilometre, where they are for places. */
export interface LedgerOptions {
  /** What each site may cost within any window. */
  readonly budgetPerSite: number;
  /** What all sites together may cost within any window, since they may compare notes; none by default. */
  readonly budgetInAll?: number;
  /** The length of a window; a day by default. Windows slide: a charge counts until it is that old. */
  readonly windowMilliseconds?: number;
  /** For how long an output is repeated before another is drawn and charged; an hour by default. */
  readonly holdMilliseconds?: number;
  /** Randomness, for tests. */
  readonly random?: RandomBytes;
}

/** What is left of a budget. */
export interface Balance {
  readonly budget: number;
  readonly spent: number;
  readonly left: number;
  /** When the oldest charge within the window stops counting, in milliseconds since 1970; null if there is none. */
  readonly nextRefund: number | null;
}

/** One output that was paid for and released. */
export interface Released {
  readonly at: number;
  readonly mechanism: string;
  readonly epsilon: number;
  readonly output: Output;
}

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** Charges are decimals of nine digits, as whole numbers, so that they add up without rounding: ten of 0.1 are 1. */
const UNITS_PER_EPSILON = 1e9;
/** The largest budget and charge, so that sums of units are exact in floating point. */
const MOST_EPSILON = 1e6;
/** The outputs that are remembered of each site beyond the window, for its history. */
const MOST_HISTORY = 200;
const ALL_SITES = "all";

/** Charges every output before it is returned, and repeats outputs instead of drawing new ones. */
export class Ledger {
  private constructor(
    private readonly _store: Store,
    private readonly _budget: number,
    private readonly _budgetInAll: number,
    private readonly _window: number,
    private readonly _hold: number,
    private readonly _random: RandomBytes,
  ) {}

  /**
   * A ledger over a store.
   *
   * @throws InvalidOption
   */
  static async open(store: Store, options: LedgerOptions): Promise<Ledger> {
    const { budgetPerSite, budgetInAll = MOST_EPSILON, windowMilliseconds = DAY, holdMilliseconds = HOUR } = options;
    const budgets = [budgetPerSite, budgetInAll];
    if (!budgets.every((budget) => budget >= 0 && budget <= MOST_EPSILON)) {
      throw new InvalidOption(`a budget must be a number from 0 to ${MOST_EPSILON}`);
    }
    if (!(windowMilliseconds > 0 && holdMilliseconds >= 0 && Number.isFinite(windowMilliseconds + holdMilliseconds))) {
      throw new InvalidOption("the window must be a positive number of milliseconds, and the hold at least 0");
    }
    const [units, unitsInAll] = budgets.map((budget) => Math.floor(budget * UNITS_PER_EPSILON)) as [number, number];
    return new Ledger(
      store,
      units,
      unitsInAll,
      windowMilliseconds,
      holdMilliseconds,
      options.random ?? systemBytes,
    );
  }

  /**
   * An output for a secret: the one that the site was last given, if it is younger than `holdMilliseconds` or nothing
   * is left to pay for another; else a new one, whose charge and which itself are on disk before it is returned.
   *
   * Whether it is repeated depends on the clock and the charges alone, never on the secret. Where the clock was set
   * back, the time of the latest charge counts.
   *
   * @param site who is given the output, such as an origin.
   * @param now milliseconds since 1970.
   * @throws BudgetSpent where the budget does not suffice and there is no output to repeat within the window.
   * @throws StoreFailed where the store failed; nothing is returned then.
   */
  async release(site: string, mechanism: Mechanism, secret: Secret, now: number): Promise<Output> {
    if (!Number.isFinite(now)) throw new InvalidOption("the time must be a finite number of milliseconds");
    const charge = chargeOf(mechanism);
    const change = ([own, all]: readonly (Account | undefined)[]): Change<Output | BudgetSpent> =>
      this._decide(own?.entries ?? [], all?.entries ?? [], mechanism, charge, secret, now);
    // Most questions are repeated ones: these need no transaction that writes.
    const keys = [keyOf(site), ALL_SITES];
    const repeated = this._repeated((await this._store.read(keys))[0]?.entries ?? [], mechanism, now, this._hold);
    const outcome = repeated ?? (await this._store.update(keys, change));
    if (outcome instanceof BudgetSpent) throw outcome;
    return outcome;
  }

  /** Repeat, draw and charge, or refuse. Runs within a transaction, so what is drawn is paid for or never shown. */
  private _decide(
    own: readonly Entry[],
    all: readonly Entry[],
    mechanism: Mechanism,
    charge: number,
    secret: Secret,
    now: number,
  ): Change<Output | BudgetSpent> {
    const repeated = this._repeated(own, mechanism, now, this._hold);
    if (repeated !== null) return { accounts: [], result: repeated };
    const at = latest(all, latest(own, now));
    const affordableAt = Math.max(
      this._affordableAt(own, this._budget, charge, at),
      this._affordableAt(all, this._budgetInAll, charge, at),
    );
    if (affordableAt > at) {
      const last = this._repeated(own, mechanism, now, this._window);
      if (last !== null) return { accounts: [], result: last };
      const message = "the budget of this site, or of all sites together, does not suffice for another output";
      const when = affordableAt === Infinity ? null : affordableAt;
      return { accounts: [], result: new BudgetSpent(message, when) };
    }
    const output = mechanism.sample(secret, this._random);
    const entry = { at, mechanism: mechanism.id, charge, output };
    return {
      accounts: [
        { entries: [...this._remembered(own, at, MOST_HISTORY), entry] },
        { entries: [...this._remembered(all, at, 0), { ...entry, output: null }] },
      ],
      result: output,
    };
  }

  /** The last output of a mechanism to a site, if it is younger than this. */
  private _repeated(entries: readonly Entry[], mechanism: Mechanism, now: number, age: number): Output | null {
    const last = entries.filter((entry) => entry.mechanism === mechanism.id).at(-1);
    return last !== undefined && now - last.at < age ? last.output : null;
  }

  /** The earliest time, not before `at`, at which a charge fits into the budget; ∞ if there is none. */
  private _affordableAt(entries: readonly Entry[], budget: number, charge: number, at: number): number {
    if (charge > budget) return Infinity;
    const counted = this._counted(entries, at);
    let spent = counted.reduce((sum, entry) => sum + entry.charge, 0);
    let when = at;
    for (const entry of counted) {
      if (spent + charge <= budget) break;
      spent -= entry.charge;
      when = entry.at + this._window;
    }
    return when;
  }

  private _counted(entries: readonly Entry[], at: number): readonly Entry[] {
    return entries.filter((entry) => at - entry.at < this._window);
  }

  /** The entries that still count, and up to so many before them. */
  private _remembered(entries: readonly Entry[], at: number, most: number): readonly Entry[] {
    const counting = this._counted(entries, at).length;
    return entries.slice(Math.max(0, entries.length - Math.max(counting, most)));
  }

  /** What is left for a site: of its own budget, or of all sites' together where that is less. */
  async balance(site: string, now: number): Promise<Balance> {
    const [own, all] = await this._store.read([keyOf(site), ALL_SITES]);
    const [first, second] = [
      this._balanceOf(own?.entries ?? [], this._budget, now),
      this._balanceOf(all?.entries ?? [], this._budgetInAll, now),
    ];
    return first.left <= second.left ? first : second;
  }

  private _balanceOf(entries: readonly Entry[], budget: number, now: number): Balance {
    const counted = this._counted(entries, latest(entries, now));
    const spent = counted.reduce((sum, entry) => sum + entry.charge, 0);
    const oldest = counted[0];
    return {
      budget: budget / UNITS_PER_EPSILON,
      spent: spent / UNITS_PER_EPSILON,
      left: Math.max(0, budget - spent) / UNITS_PER_EPSILON,
      nextRefund: oldest === undefined ? null : oldest.at + this._window,
    };
  }

  /** What a site was given, the latest first. */
  async history(site: string): Promise<readonly Released[]> {
    const [account] = await this._store.read([keyOf(site)]);
    const released = (account?.entries ?? []).flatMap(({ at, mechanism, charge, output }) =>
      output === null ? [] : [{ at, mechanism, epsilon: charge / UNITS_PER_EPSILON, output }],
    );
    return released.reverse();
  }

  /** The sites that were given something. */
  async sites(): Promise<readonly string[]> {
    return (await this._store.keys()).filter((key) => key !== ALL_SITES).map((key) => key.slice(keyOf("").length));
  }
}

function keyOf(site: string): string {
  return `site ${site}`;
}

/** The time, or that of the latest entry where the clock was set back. */
function latest(entries: readonly Entry[], now: number): number {
  return Math.max(now, entries.at(-1)?.at ?? now);
}

function chargeOf(mechanism: Mechanism): number {
  const epsilon = mechanism.epsilon ?? Infinity;
  const charge = Math.ceil(epsilon * UNITS_PER_EPSILON);
  if (!(epsilon <= MOST_EPSILON)) throw new InvalidOption("the mechanism's epsilon is too large to be charged");
  return charge;
}
