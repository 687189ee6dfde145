// What is true now: a position (typed, chosen on the map, or this computer's own), or one of some labels.
import { PositionError, parsePlane, parsePosition } from "./position.js";
import { $, chosen, digits, element, on, shown, state } from "./shared.js";

let target = null; // what is to be given: {kind: "map", box, width, height} or {kind: "labels", labels}
let changed = () => {};
let clicked = false; // whether the map has told where the present click was

export function setUpTruth(onChange) {
  changed = onChange;
  $("truth-here").addEventListener("click", locate);
  $("truth-position").addEventListener("input", () => { note(""); changed(); });
  $("truth-label").addEventListener("change", changed);
  on("map-click", (position) => { clicked = true; take(position); });
  // What is chosen in the picture is taken once the picture has taken it.
  $("picture").addEventListener("click", () => setTimeout(takePicked));
  $("picture").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") setTimeout(takePicked); });
}

export function askFor(next) {
  // Ask for a secret of this kind; what was given for the same kind before stays.
  const same = JSON.stringify(next) === JSON.stringify(target);
  target = next;
  const onMap = next?.kind === "map";
  $("truth").hidden = !next;
  $("truth-of-map").hidden = !onMap;
  $("truth-of-labels").hidden = onMap || !next;
  $("truth-by-map").hidden = !state.problem || JSON.stringify(mapOf(state.problem)) !== JSON.stringify(next);
  if (same || !next) return;
  $("truth-position").value = "";
  note("");
  if (!onMap) {
    $("truth-label").replaceChildren(element("option", { value: "" }, "choose …"), ...next.labels.map((label, i) => element("option", { value: i }, shown(label))));
    return;
  }
  $("truth-here").hidden = !next.box || !navigator.geolocation;
  $("truth-privacy").hidden = $("truth-here").hidden;
  $("truth-position-name").textContent = next.box ? "Where you are" : "Where you are, in kilometres east and north";
  $("truth-position").placeholder = exampleOn(next);
}

export const exampleOn = ({ box, width, height }) => (box ? coordinates((box[1] + box[3]) / 2, (box[0] + box[2]) / 2, 2) : `${digits(width / 2)}, ${digits(height / 2)}`);

export function mapOf(problem) {
  // What is asked for, for an answer about this problem; a ledger says it in the same form.
  const map = problem.kind === "points" ? problem.map : problem.grid;
  return map ? { kind: "map", box: map.box, width: map.width, height: map.height } : { kind: "labels", labels: problem.labels };
}

export const coordinates = (latitude, longitude, places = 5) => `${latitude.toFixed(places)}, ${longitude.toFixed(places)}`;

export function outputText(output) {
  if (output.latitude !== undefined) return coordinates(output.latitude, output.longitude);
  if (output.x !== undefined) return `${output.x.toFixed(3)}, ${output.y.toFixed(3)}`;
  return output.text;
}

export function truth() {
  // The secret as the HTTP API takes it; an error in the page's words where there is none, or it is not on the map.
  if (target.kind === "labels") {
    if ($("truth-label").value === "") throw new PositionError("Choose what is true first.");
    return { secret: target.labels[Number($("truth-label").value)] };
  }
  return { at: positionOnMap($("truth-position").value, target) };
}

export function positionOnMap(text, { box, width, height }) {
  // A position that is on the map, as the HTTP API takes it.
  if (!box) {
    const at = parsePlane(text);
    if (at.x >= 0 && at.x <= width && at.y >= 0 && at.y <= height) return at;
    throw new PositionError(`This is outside of the map, which is ${digits(width)} km from west to east and ${digits(height)} km from south to north.`);
  }
  const at = parsePosition(text);
  const within = ({ latitude, longitude }) => longitude >= box[0] && longitude <= box[2] && latitude >= box[1] && latitude <= box[3];
  if (within(at)) return at;
  if (within({ latitude: at.longitude, longitude: at.latitude })) throw new PositionError("This is outside of the map, and inside of it with the two numbers exchanged: write the latitude (north) first.");
  throw new PositionError(`This is outside of the map, which goes from ${digits(box[1])} to ${digits(box[3])} north and from ${digits(box[0])} to ${digits(box[2])} east. Nothing can be said about places outside of it.`);
}

function note(text) { $("truth-note").textContent = text; }

function take({ latitude, longitude }) {
  if (target?.kind !== "map" || !target.box) return;
  $("truth-position").value = coordinates(latitude, longitude);
  note("Taken from the map.");
  changed();
}

function takePicked() {
  // The secret that was just chosen in the picture, where the picture shows the problem that is asked about.
  const { problem } = state;
  if (clicked) { clicked = false; return; } // the map was more exact than the middle of a cell
  if (!problem || chosen("view") !== "outputs" || JSON.stringify(mapOf(problem)) !== JSON.stringify(target)) return;
  if (target.kind === "labels") { $("truth-label").value = String(state.secret); changed(); return; }
  const [x, y] = problem.kind === "points" ? state.place : middle(problem.grid, state.secret);
  if (target.box) {
    const [west, south, east, north] = target.box;
    take({ latitude: south + (y / target.height) * (north - south), longitude: west + (x / target.width) * (east - west) });
  } else {
    $("truth-position").value = `${digits(x)}, ${digits(y)}`;
    changed();
  }
}

export function middle({ columns, rows, width, height }, cell) {
  // The middle of a cell, in kilometres from the south-west corner.
  return [((cell % columns) + 0.5) * (width / columns), (Math.floor(cell / columns) + 0.5) * (height / rows)];
}

const REFUSED = { 1: "This computer's position may not be used: allow it for this page in your browser, or type it.", 3: "This computer did not find its position in time: type it." };

function locate() {
  note("Asking this computer where it is …");
  navigator.geolocation.getCurrentPosition(
    ({ coords }) => {
      $("truth-position").value = coordinates(coords.latitude, coords.longitude);
      note(`This computer's own position, within about ${digits(coords.accuracy < 1000 ? Math.ceil(coords.accuracy) : Math.ceil(coords.accuracy / 1000))} ${coords.accuracy < 1000 ? "m" : "km"}.`);
      changed();
    },
    ({ code }) => note(REFUSED[code] ?? "This computer does not know its position: type it."),
    { maximumAge: 0, timeout: 15_000 },
  );
}
