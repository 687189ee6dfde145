/** Where the ledger keeps its accounts: in the browser's database, or in memory. */

import { StoreFailed } from "./errors.js";
import type { Output } from "./types.js";

/** One charge, and the output that was paid for. Secrets are never stored. */
export interface Entry {
  /** When, in milliseconds since 1970. */
  readonly at: number;
  /** The id of the mechanism. */
  readonly mechanism: string;
  /** What was charged, in units of 10^-9 of epsilon, rounded up. */
  readonly charge: number;
  /** What was released; null in the account of all sites together, which has charges only. */
  readonly output: Output | null;
}

/** What is stored of one site, or of all together: plain values that a structured clone keeps. */
export interface Account {
  /** The oldest first. */
  readonly entries: readonly Entry[];
}

/** New accounts, in the order of the keys, and a result. An account that is undefined is left as it is. */
export interface Change<Result> {
  readonly accounts: readonly (Account | undefined)[];
  readonly result: Result;
}

/** Atomic, durable reads and changes of accounts. Several tabs may use the same store at once. */
export interface Store {
  /** The accounts with these keys as they are; undefined where there is none. */
  read(keys: readonly string[]): Promise<readonly (Account | undefined)[]>;
  /** All keys. */
  keys(): Promise<readonly string[]>;
  /**
   * Change accounts in one transaction: `change` is given the accounts and returns new ones and a result, at once. The
   * promise is fulfilled when the change is on disk. If it is rejected, nothing was changed.
   */
  update<Result>(
    keys: readonly string[],
    change: (accounts: readonly (Account | undefined)[]) => Change<Result>,
  ): Promise<Result>;
}

/** Accounts in memory: for tests, and where nothing may be stored. They are gone with the page. */
export class MemoryStore implements Store {
  private readonly _accounts = new Map<string, Account>();

  async read(keys: readonly string[]): Promise<readonly (Account | undefined)[]> {
    return keys.map((key) => this._accounts.get(key));
  }

  async keys(): Promise<readonly string[]> {
    return [...this._accounts.keys()];
  }

  async update<Result>(
    keys: readonly string[],
    change: (accounts: readonly (Account | undefined)[]) => Change<Result>,
  ): Promise<Result> {
    const { accounts, result } = change(keys.map((key) => this._accounts.get(key)));
    keys.forEach((key, at) => {
      const account = accounts[at];
      if (account !== undefined) this._accounts.set(key, account);
    });
    return result;
  }
}

const TABLE = "accounts";

/** Accounts in IndexedDB, with strict durability where the browser knows it. */
export class IndexedDbStore implements Store {
  private constructor(
    private readonly _name: string,
    private readonly _factory: IDBFactory,
    private _database: IDBDatabase | null,
  ) {}

  /**
   * Open the database of this name, or make it.
   *
   * @throws StoreFailed
   */
  static async open(name = "privacygames-ledger", factory: IDBFactory = indexedDB): Promise<IndexedDbStore> {
    const store = new IndexedDbStore(name, factory, null);
    await store._connect();
    return store;
  }

  /** The connection; a new one where the browser has closed it. */
  private async _connect(): Promise<IDBDatabase> {
    if (this._database !== null) return this._database;
    const database = await new Promise<IDBDatabase>((resolve, reject) => {
      const request = this._factory.open(this._name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(new StoreFailed("the ledger cannot be opened"));
      request.onblocked = () => reject(new StoreFailed("the ledger is in use by another version"));
    });
    const forget = (): void => {
      this._database = null;
    };
    database.onclose = forget;
    database.onversionchange = () => {
      database.close();
      forget();
    };
    this._database = database;
    return database;
  }

  async read(keys: readonly string[]): Promise<readonly (Account | undefined)[]> {
    return this._transaction("readonly", (table, finish) => getAll(table, keys, finish));
  }

  async keys(): Promise<readonly string[]> {
    return this._transaction("readonly", (table, finish) => {
      const request = table.getAllKeys();
      request.onsuccess = () => finish(request.result.map(String));
    });
  }

  async update<Result>(
    keys: readonly string[],
    change: (accounts: readonly (Account | undefined)[]) => Change<Result>,
  ): Promise<Result> {
    return this._transaction("readwrite", (table, finish, fail) => {
      getAll(table, keys, (current) => {
        let changed: Change<Result>;
        try {
          changed = change(current);
        } catch (error) {
          fail(error);
          return;
        }
        const { accounts, result } = changed;
        try {
          keys.forEach((key, at) => {
            if (accounts[at] !== undefined) table.put(accounts[at], key);
          });
          finish(result);
        } catch {
          fail(); // the quota, or a transaction that was aborted already
        }
      });
    });
  }

  /** Run a transaction; its result is returned only once it is complete, and so on disk. */
  private async _transaction<Result>(
    mode: IDBTransactionMode,
    work: (table: IDBObjectStore, finish: (result: Result) => void, fail: (error?: unknown) => void) => void,
  ): Promise<Result> {
    const transaction = await this._begin(mode);
    return new Promise<Result>((resolve, reject) => {
      let outcome: { result: Result } | null = null;
      let failure: unknown = new StoreFailed("the ledger could not be written: nothing was charged or released");
      transaction.oncomplete = () => (outcome === null ? reject(failure) : resolve(outcome.result));
      transaction.onabort = () => reject(failure);
      work(
        transaction.objectStore(TABLE),
        (result) => {
          outcome = { result };
        },
        (error) => {
          failure = error ?? failure;
          try {
            transaction.abort();
          } catch {
            // it was aborted already
          }
        },
      );
    });
  }

  private async _begin(mode: IDBTransactionMode): Promise<IDBTransaction> {
    try {
      return (await this._connect()).transaction(TABLE, mode, { durability: "strict" });
    } catch {
      this._database = null; // closed meanwhile: once more
    }
    try {
      return (await this._connect()).transaction(TABLE, mode, { durability: "strict" });
    } catch {
      throw new StoreFailed("the ledger cannot be opened");
    }
  }
}

function getAll(
  table: IDBObjectStore,
  keys: readonly string[],
  finish: (accounts: (Account | undefined)[]) => void,
): void {
  const accounts: (Account | undefined)[] = keys.map(() => undefined);
  let left = keys.length;
  if (left === 0) finish(accounts);
  keys.forEach((key, at) => {
    const request = table.get(key);
    request.onsuccess = () => {
      accounts[at] = request.result as Account | undefined;
      left -= 1;
      if (left === 0) finish(accounts);
    };
  });
}
