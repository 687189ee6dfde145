/** The document that may ask the device for its position. It is opened for one question and closed after it. */
import { ASK_DEVICE, askHere } from "./true-position.js";

chrome.runtime.onMessage.addListener((message, sender, respond) => {
  if (message !== ASK_DEVICE || sender.id !== chrome.runtime.id || sender.tab !== undefined) return undefined;
  void askHere().then(respond);
  return true;
});
