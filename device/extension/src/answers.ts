/** What a site is told, and when: neither the kind of an answer nor its time depends on where the user is. */
import { BudgetSpent, IndexedDbStore, Ledger, type Output } from "privacygames-device";

import { budgetFor, outputsLeft } from "../../shared/budget.js";
import type { Reply } from "./messages.js";
import type { Active } from "./mechanisms.js";
import type { Settings } from "./settings.js";

const DAY = 24 * 60 * 60 * 1000;
const MINUTE = 60 * 1000;

/** Metres to which the stated accuracy is rounded up. It depends on the mechanism only. */
const ACCURACY_STEP = 100;

/** Milliseconds: an answer leaves after a whole multiple of them, so that a stored answer is not told from a new draw. */
export const ANSWER_STEP = 500;

/** The ledger under the user's settings. */
export async function openLedger(settings: Settings, epsilon: number): Promise<Ledger> {
  return Ledger.open(await IndexedDbStore.open(), {
    budgetPerSite: budgetFor(settings.answersPerSite, epsilon),
    budgetInAll: budgetFor(settings.answersInAll, epsilon),
    windowMilliseconds: DAY,
    holdMilliseconds: settings.holdMinutes * MINUTE,
  });
}

/**
 * A protected position for an account: the stored one while it is held; else a new draw, charged before it is returned.
 * Where nothing is left to pay for a draw, or the device has no position, the last output of the day is repeated.
 */
export async function protectedAnswer(
  account: string,
  { mechanism, epsilon, accuracyKm }: Active,
  settings: Settings,
  truePosition: () => Promise<{ readonly latitude: number; readonly longitude: number } | null>,
): Promise<Reply> {
  const ledger = await openLedger(settings, epsilon);
  const now = Date.now();
  const [last] = await ledger.history(account);
  const tell = ({ position }: Output): Reply =>
    position === null
      ? { kind: "failed", code: 2 }
      : {
          kind: "told",
          latitude: position.latitude,
          longitude: position.longitude,
          accuracy: Math.ceil((accuracyKm * 1000) / ACCURACY_STEP) * ACCURACY_STEP,
          timestamp: Math.floor(now / MINUTE) * MINUTE,
        };
  const isRepeatable = last !== undefined && now - last.at < DAY;
  const isHeld = last !== undefined && now - last.at < settings.holdMinutes * MINUTE;
  // Where the last output is repeated anyway, the device is not asked, and takes no time to answer.
  if (isHeld || (isRepeatable && outputsLeft(await ledger.balance(account, now), epsilon) === 0)) return tell(last.output);
  const secret = await truePosition();
  if (secret === null) return isRepeatable ? tell(last.output) : { kind: "failed", code: 2 };
  try {
    return tell(await ledger.release(account, mechanism, secret, now));
  } catch (error) {
    if (error instanceof BudgetSpent) return { kind: "failed", code: 2 };
    throw error;
  }
}

/** The result of some work, at the next whole multiple of `ANSWER_STEP` after it was asked for. */
export async function atWholeSteps<Result>(work: Promise<Result>): Promise<Result> {
  const start = performance.now();
  const result = await work;
  const elapsed = performance.now() - start;
  const steps = Math.max(1, Math.ceil(elapsed / ANSWER_STEP));
  await new Promise((resolve) => setTimeout(resolve, steps * ANSWER_STEP - elapsed));
  return result;
}
