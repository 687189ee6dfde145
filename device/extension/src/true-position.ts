/**
 * Where the device is. Asked for under the extension's own origin: in a document that no page can reach (Chromium: a service
 * worker has no geolocation), or in the background page (Firefox). So no site needs the browser's permission, and in
 * Chromium it is withheld from all of them. The position is used for one draw and kept nowhere.
 */
import type { Position } from "privacygames-device";

/** The message that asks the offscreen document. */
export const ASK_DEVICE = "ask-device";

/** Milliseconds after which the device is taken to have no position. */
const TIMEOUT = 20_000;

/** Asks the device itself; null where it has no position. */
export function askHere(): Promise<Position | null> {
  return new Promise((resolve) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude } }) => resolve({ latitude, longitude }),
      () => resolve(null),
      { enableHighAccuracy: false, maximumAge: 0, timeout: TIMEOUT },
    );
  });
}

let current: Promise<Position | null> | undefined;

/** Where the device is now; null where it has no position. Questions at the same time share one answer. */
export function truePosition(): Promise<Position | null> {
  current ??= ask().finally(() => {
    current = undefined;
  });
  return current;
}

async function ask(): Promise<Position | null> {
  if (FIREFOX) return askHere();
  const { offscreen } = chrome;
  await offscreen
    .createDocument({ url: "offscreen.html", reasons: ["GEOLOCATION"], justification: "Sites are told a protected position." })
    .catch(() => undefined); // there is one already, from a worker that was stopped
  try {
    return (await chrome.runtime.sendMessage(ASK_DEVICE)) as Position | null;
  } finally {
    await offscreen.closeDocument().catch(() => undefined);
  }
}
