/** Mechanisms on the user's own device: read a file, verify it, draw outputs, and keep the ledger. */

export { BudgetSpent, InvalidFile, InvalidOption, StoreFailed, UnknownSecret } from "./errors.js";
export { Ledger } from "./ledger.js";
export type { Balance, LedgerOptions, Released } from "./ledger.js";
export { open } from "./open.js";
export { planarLaplace } from "./planar-laplace.js";
export type { PlanarLaplaceOptions } from "./planar-laplace.js";
export { IndexedDbStore, MemoryStore } from "./store.js";
export type { Account, Change, Entry, Store } from "./store.js";
export type * from "./types.js";
export { verifyInWorker } from "./verify-in-worker.js";
