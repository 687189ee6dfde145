/** The offline page: takes the phone's position, draws a protected one, and shows it once it is paid for. */
import {
  BudgetSpent, IndexedDbStore, Ledger, open, verifyInWorker, type Mechanism, type Position,
} from "privacygames-device";

import { budgetFor, outputsLeft } from "../../shared/budget.js";
import { byId, coordinates, element, kilometres, moment } from "../../shared/elements.js";
import { sketch } from "../../shared/map.js";
import type { PageSettings } from "./settings.js";

const DAY = 24 * 60 * 60 * 1000;
const MINUTE = 60 * 1000;

/** The account of everybody that a position is shared with: all are given the same one. */
const ACCOUNT = "shared";

/** Where the id of the mechanism is noted that was verified on this phone. */
const VERIFIED = "verified mechanism";

const FORBIDDEN = "This page may not use the phone's position: allow it in the browser's settings.";

/** The largest number of earlier positions that are listed. */
const LISTED = 8;

/** The phone gave no position. */
class NoPosition extends Error {}

function describe(error: unknown): string {
  if (error instanceof BudgetSpent) return "The budget is spent, and there is no earlier position to repeat.";
  if (error instanceof NoPosition) return error.message;
  return "The ledger could not be written, so nothing was drawn. Is there space left? Private windows may not store anything.";
}

function complain(text: string): void {
  byId("trouble").textContent = text;
  byId("trouble").hidden = false;
}

async function read(file: string): Promise<Response> {
  const response = await fetch(file);
  if (!response.ok) throw new Error(`${file} is missing: write this folder again with privacygames device page.`);
  return response;
}

/** The mechanism of this folder, verified once on each phone. */
async function readMechanism(): Promise<Mechanism> {
  const bytes = new Uint8Array(await (await read("mechanism.pgd")).arrayBuffer());
  const mechanism = await open(bytes);
  if (localStorage.getItem(VERIFIED) !== mechanism.id) {
    const report = (share: number): void => {
      byId("mechanism").textContent = `Verifying the mechanism: ${Math.floor(share * 100)} %`;
    };
    const verdict = await verifyInWorker(bytes, report, () => new Worker("worker.js"));
    if (!verdict.holds) throw new Error(verdict.reason);
    localStorage.setItem(VERIFIED, mechanism.id);
  }
  return mechanism;
}

function truePosition(): Promise<Position> {
  return new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude } }) => resolve({ latitude, longitude }),
      ({ code }) => reject(new NoPosition(code === 1 ? FORBIDDEN : "The phone has no position at the moment.")),
      { enableHighAccuracy: false, maximumAge: 0, timeout: 30_000 },
    );
  });
}

class Page {
  constructor(
    readonly mechanism: Mechanism,
    readonly ledger: Ledger,
    readonly epsilon: number,
    readonly accuracyKm: number,
    readonly settings: PageSettings,
  ) {}

  /** The output that is shared, and those before. */
  async show(): Promise<void> {
    const balance = await this.ledger.balance(ACCOUNT, Date.now());
    const left = outputsLeft(balance, this.epsilon);
    byId("meter").style.setProperty("inline-size", `${Math.max(0, Math.min(1, balance.left / balance.budget)) * 100}%`);
    byId("budget").textContent =
      `${left} of ${this.settings.answersPerDay} new positions within a day. ` +
      `For ${this.settings.repeatMinutes} minutes the same one is given again, wherever you are.`;
    const earlier = (await this.ledger.history(ACCOUNT)).slice(0, LISTED);
    byId("told").replaceChildren(
      ...earlier.flatMap(({ at, output: { position } }) => {
        if (position === null) return [];
        const row = element("li", coordinates(position));
        row.append(element("time", moment(at)));
        return [row];
      }),
    );
  }

  async draw(): Promise<void> {
    byId("trouble").hidden = true;
    byId("result").hidden = true;
    const now = Date.now();
    const [last] = await this.ledger.history(ACCOUNT);
    const isHeld = last !== undefined && now - last.at < this.settings.repeatMinutes * MINUTE;
    const isSpent = outputsLeft(await this.ledger.balance(ACCOUNT, now), this.epsilon) === 0;
    const isRepeated = last !== undefined && (isHeld || (isSpent && now - last.at < DAY)); // the phone need not be asked
    const output = isRepeated ? last.output : await this.ledger.release(ACCOUNT, this.mechanism, await truePosition(), now);
    const { position } = output;
    if (position === null) throw new Error("This mechanism has no positions.");
    const [paid] = await this.ledger.history(ACCOUNT);
    byId("when").textContent = `Drawn at ${moment(paid?.at ?? now)}. You are within ${kilometres(this.accuracyKm)} nineteen times out of twenty.`;
    byId("position").textContent = coordinates(position);
    byId("map").replaceChildren(sketch([position], this.accuracyKm));
    const uri = `geo:${position.latitude.toFixed(4)},${position.longitude.toFixed(4)};u=${Math.ceil(this.accuracyKm * 1000)}`;
    byId<HTMLAnchorElement>("open").href = uri;
    byId("note").textContent = "";
    byId("share").hidden = typeof navigator.share !== "function";
    byId("share").onclick = () => void navigator.share({ text: `${coordinates(position)}\n${uri}` }).catch(() => undefined);
    byId("copy").onclick = () =>
      void navigator.clipboard.writeText(coordinates(position)).then(
        () => (byId("note").textContent = "Copied."),
        () => (byId("note").textContent = "The browser did not let this page copy: select the position above."),
      );
    byId("result").hidden = false;
    await this.show();
  }
}

async function main(): Promise<void> {
  if ("serviceWorker" in navigator) await navigator.serviceWorker.register("service-worker.js").catch(() => undefined); // needs https
  await navigator.storage?.persist?.().catch(() => false); // a ledger that the browser clears is a budget that starts anew
  const settings = (await (await read("settings.json")).json()) as PageSettings;
  const mechanism = await readMechanism();
  const { epsilon, accuracyKm } = mechanism;
  if (epsilon === null || accuracyKm === null) throw new Error("This mechanism is not for positions.");
  const ledger = await Ledger.open(await IndexedDbStore.open(), {
    budgetPerSite: budgetFor(settings.answersPerDay, epsilon),
    windowMilliseconds: DAY,
    holdMilliseconds: settings.repeatMinutes * MINUTE,
  });
  const page = new Page(mechanism, ledger, epsilon, accuracyKm, settings);
  byId("mechanism").textContent = `${settings.name}, verified on this phone: ${mechanism.guarantee}.`;
  await page.show();
  const button = byId<HTMLButtonElement>("draw");
  button.disabled = false;
  button.onclick = () => {
    button.disabled = true;
    void page
      .draw()
      .catch((error: unknown) => complain(describe(error)))
      .finally(() => {
        button.disabled = false;
      });
  };
}

main().catch((error: unknown) => {
  byId("mechanism").textContent = "";
  complain(error instanceof Error ? error.message : String(error));
});
