// How much of a job is done and how long it will take, in words: from the share it tells, and how fast that grew lately.
import { get } from "./api.js";

const LATELY_SECONDS = 4; // a solver speeds up towards its end: what was long ago says little
const [LEAST_SHARE, LEAST_GROWTH] = [0.03, 0.01]; // below these nothing is said about the time left but its limit
let seen = [];
let limit = null; // seconds after which the server ends a job

export function follow() {
  seen = [];
  if (limit === null) get("about").then((about) => { limit = about.limits.job_seconds; }).catch(() => {});
}

export function words(share, seconds) {
  seen.push([seconds, share]);
  while (seen.length > 2 && seen[0][0] < seconds - LATELY_SECONDS) seen.shift();
  const [from, before] = seen[0];
  const rate = seconds > from ? (share - before) / (seconds - from) : 0;
  const done = share > 0 ? [`${Math.floor(100 * share)}\u00a0% done`] : [];
  const left = share >= LEAST_SHARE && share - before >= LEAST_GROWTH ? `${rough((1 - share) / rate)} left` : limit && seconds > 2 ? `at most ${span(limit - seconds)} left` : "time left not known yet";
  return [...done, left, `${seconds.toFixed(0)} s so far`];
}

const rough = (seconds) => (seconds < 4 ? "a few seconds" : `about ${span(seconds)}`);

export function span(seconds) {
  const step = seconds < 15 ? 5 : seconds < 100 ? 10 : 60;
  const rounded = Math.max(step, step * Math.round(seconds / step));
  return rounded < 120 ? `${rounded}\u00a0s` : `${Math.round(rounded / 60)}\u00a0min`;
}
