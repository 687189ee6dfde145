/** Budgets as a number of new positions, which people can picture. */
import type { Balance } from "privacygames-device";

/** The ledger charges in units of this many of epsilon, rounded up. */
const UNIT = 1e-9;

/** The budget that pays for a number of outputs. */
export function budgetFor(outputs: number, epsilon: number): number {
  return (outputs * Math.ceil(epsilon / UNIT) + 0.5) * UNIT;
}

/** How many outputs a balance still pays for. */
export function outputsLeft({ left }: Balance, epsilon: number): number {
  return Math.floor(left / epsilon + 1e-6); // quotients of whole multiples may be a little below the whole number
}
