/** The mechanisms that can be used: the built-in noise, and files that the user imported, kept in the browser's database. */
import { open, planarLaplace, type Mechanism } from "privacygames-device";

import type { Settings } from "./settings.js";

const DATABASE = "privacygames-mechanisms";
const STORE = "files";

/** A file that was imported and verified. */
export interface ImportedFile {
  readonly id: string;
  readonly name: string;
  readonly bytes: Uint8Array;
}

function promised<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the database failed"));
  });
}

async function inStore<Result>(mode: IDBTransactionMode, run: (store: IDBObjectStore) => IDBRequest<Result>): Promise<Result> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: "id" });
  const database = await promised(opening);
  try {
    return await promised(run(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

/** All imported files. */
export function importedFiles(): Promise<ImportedFile[]> {
  return inStore("readonly", (store) => store.getAll() as IDBRequest<ImportedFile[]>);
}

/** Keeps a file; one with the same content is replaced. */
export async function keepFile(file: ImportedFile): Promise<void> {
  await inStore("readwrite", (store) => store.put(file));
}

/** Removes a file. */
export async function removeFile(id: string): Promise<void> {
  await inStore("readwrite", (store) => store.delete(id));
}

/** The step of the built-in noise's lattice, times epsilon, in metres: small enough to cost only 2.5 % of the noise. */
const LATTICE_METRES_PER_EPSILON = 50;
/** The radius of its table, times epsilon: 128 steps, beyond which little of the noise lies. */
const RADIUS_KM_PER_EPSILON = 6.4;

/** The built-in noise: it works anywhere, before any mechanism is imported. */
export function builtIn(epsilonPerKm: number): Mechanism {
  return planarLaplace({
    epsilonPerKm,
    latticeMetres: LATTICE_METRES_PER_EPSILON / epsilonPerKm,
    radiusKm: RADIUS_KM_PER_EPSILON / epsilonPerKm,
  });
}

/** A mechanism in use, with all that an answer needs. */
export interface Active {
  readonly mechanism: Mechanism;
  readonly name: string;
  readonly epsilon: number;
  readonly accuracyKm: number;
}

/** Whether a mechanism can answer a site: it is for positions on the Earth, and its guarantee can be charged. */
export function isUsable(mechanism: Mechanism): boolean {
  return (mechanism.kind === "grid" || mechanism.kind === "points") && mechanism.epsilon !== null && mechanism.accuracyKm !== null;
}

let opened: { readonly key: string; readonly active: Active } | undefined;

/** The mechanism that the settings name. A file that cannot be read is an error: no other mechanism takes its place. */
export async function activeMechanism({ active, epsilonPerKm }: Settings): Promise<Active> {
  const key = active ?? `built-in ${epsilonPerKm}`;
  if (opened?.key === key) return opened.active;
  const file = active === null ? undefined : (await importedFiles()).find(({ id }) => id === active);
  if (active !== null && file === undefined) throw new Error("the active mechanism is not there");
  const mechanism = file === undefined ? builtIn(epsilonPerKm) : await open(file.bytes);
  if (!isUsable(mechanism)) throw new Error("the active mechanism is not for positions");
  const result: Active = {
    mechanism,
    name: file?.name ?? "Built-in noise",
    epsilon: mechanism.epsilon as number,
    accuracyKm: mechanism.accuracyKm as number,
  };
  opened = { key, active: result };
  return result;
}
