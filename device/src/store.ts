/** Where the ledger keeps its accounts: in the browser's database, or in memory. */

import type { Output } from "./types.js";

/** One charge, and the output that was paid for. Secrets are never stored. */
export interface Entry {
  /** When, in milliseconds since 1970. */
  readonly at: number;
  /** The id of the mechanism. */
  readonly mechanism: string;
  /** What was charged, in units of 2^-32 of epsilon, rounded up. */
  readonly charge: number;
  readonly output: Output;
}

/** What is stored of one site, or of all together: plain values that a structured clone keeps. */
export interface Account {
  readonly entries: readonly Entry[];
}

/** Atomic, durable reads and changes of accounts. Several tabs may use the same store at once. */
export interface Store {
  /** The accounts with these keys as they are; undefined where there is none. */
  read(keys: readonly string[]): Promise<readonly (Account | undefined)[]>;
  /** All keys. */
  keys(): Promise<readonly string[]>;
  /**
   * Change accounts in one transaction: `change` is given the accounts and returns the new ones and a result. It is
   * called once or more, and at once. The promise is fulfilled when the change is on disk; if it is rejected, nothing
   * was changed.
   */
  update<Result>(
    keys: readonly string[],
    change: (accounts: readonly (Account | undefined)[]) => {
      readonly accounts: readonly (Account | undefined)[];
      readonly result: Result;
    },
  ): Promise<Result>;
}

/** Accounts in memory: for tests, and where nothing may be stored. They are gone with the page. */
export class MemoryStore implements Store {
  async read(_keys: readonly string[]): Promise<readonly (Account | undefined)[]> {
    throw new Error("not written yet");
  }

  async keys(): Promise<readonly string[]> {
    throw new Error("not written yet");
  }

  async update<Result>(
    _keys: readonly string[],
    _change: (accounts: readonly (Account | undefined)[]) => {
      readonly accounts: readonly (Account | undefined)[];
      readonly result: Result;
    },
  ): Promise<Result> {
    throw new Error("not written yet");
  }
}

/** Accounts in IndexedDB, with strict durability where the browser knows it. */
export class IndexedDbStore extends MemoryStore {
  /** Open the database of this name, or make it. */
  static async open(_name = "privacygames-ledger", _factory: IDBFactory = indexedDB): Promise<IndexedDbStore> {
    throw new Error("not written yet");
  }
}
