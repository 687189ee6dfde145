/** The ledger: what was released to whom, and what is left of each budget. */

import type { Store } from "./store.js";
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

/** Charges every output before it is returned, and repeats outputs instead of drawing new ones. */
export class Ledger {
  private constructor() {
    // Opened by `open` only.
  }

  /** A ledger over a store. */
  static async open(_store: Store, _options: LedgerOptions): Promise<Ledger> {
    throw new Error("not written yet");
  }

  /**
   * An output for a secret: the one that the site was last given, if it is younger than `holdMilliseconds` or nothing
   * is left to pay for another; else a new one, whose charge and which itself are on disk before it is returned.
   *
   * @param site who is given the output, such as an origin.
   * @param now milliseconds since 1970.
   * @throws BudgetSpent where the budget does not suffice and there is no output to repeat within the window.
   * @throws StoreFailed where the store failed; nothing is returned then.
   */
  async release(_site: string, _mechanism: Mechanism, _secret: Secret, _now: number): Promise<Output> {
    throw new Error("not written yet");
  }

  /** What is left for a site. */
  async balance(_site: string, _now: number): Promise<Balance> {
    throw new Error("not written yet");
  }

  /** What a site was given, the latest first. */
  async history(_site: string): Promise<readonly Released[]> {
    throw new Error("not written yet");
  }

  /** The sites that were given something. */
  async sites(): Promise<readonly string[]> {
    throw new Error("not written yet");
  }
}
