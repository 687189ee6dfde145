// The map: Leaflet moves and zooms what cartography.js draws; without Leaflet the same drawing stands still.
import { get, post } from "./api.js";
import { boxOf, cellSize, centreOf, distance, drawCells, drawDensity, drawFrame, drawGround, drawNames, drawOutlines, fixedView, frame, kilometresOf, mapColours, positionOf, regionOf } from "./cartography.js";
import { $, element, emit, inUnit, on, pictureWidth, svg, twoDigits } from "./shared.js";

const MAX_HEIGHT = 560; // of a map, so that it fits on the screen
const [OPAQUE, OVER_TILES] = [0.86, 0.6]; // opacity of cells: what lies below shines through
const [PADDING, CLOSEST] = [12, 19]; // pixels around the area at first; Leaflet's largest zoom
const REST = 200; // milliseconds without movement before the surroundings are asked for
const LOADED = "leaflet.js";

let about = null; // what GET /api/map says
let ready = null;
let leaflet = null; // { map, drawing, frame, region }
let spec = null;
let around = { box: null, places: [], land: [], coasts: [], borders: [] };
let asking = 0;
const layers = { own: [], names: [], tiles: null, credit: "" }; // `tiles` makes a layer of Leaflet

export const onMapClick = (handler) => on("map-click", handler);
export const mapAbout = () => about;
export const mapSpec = () => spec;

export function mapReady() {
  // Resolves once the page knows which files there are, and Leaflet is loaded where it is one of them.
  ready ??= load().catch(() => { ready = null; });
  return ready;
}

async function load() {
  about = await get("map");
  if (about.present.includes(LOADED) && !window.L) {
    document.head.append(element("link", { rel: "stylesheet", href: "/page/vendor/leaflet.css" }));
    await new Promise((resolve, reject) => { document.head.append(element("script", { src: "/page/vendor/leaflet.js", onload: resolve, onerror: reject })); });
  }
  emit("map-ready", about);
}

export const mapOpacity = (exported = false) => (layers.tiles && !exported ? OVER_TILES : OPAQUE);
export const hasMap = (problem, axis) => Boolean(problem.kind === "points" || (problem.grid && (axis !== "outputs" || problem.same_answers || problem.answers.length === problem.labels.length)));

export function showMap(wanted) {
  spec = wanted;
  const region = regionOf(spec.problem);
  $("map-buttons").hidden = $("map-about").hidden = true;
  if (region.box && window.L) showLive(region);
  else showFixed(region);
  if (region.box) ask();
}

export function hideMap() {
  spec = null;
  removeLive();
  $("picture").classList.remove("live");
  $("map-buttons").hidden = $("map-about").hidden = true;
  emit("map-shown", false);
}

function removeLive() {
  leaflet?.map.remove();
  leaflet = null;
}

function showFixed(region) {
  removeLive();
  $("picture").classList.remove("live");
  const root = fixedMap(spec, fixedView(region, pictureWidth(), MAX_HEIGHT + frame.foot));
  root.addEventListener("click", (event) => {
    const box = root.getBoundingClientRect();
    const [left, top, width] = root.getAttribute("viewBox").split(" ").map(Number);
    const scale = width / box.width;
    choose(root.view.from([left + (event.clientX - box.left) * scale, top + (event.clientY - box.top) * scale]));
  });
  $("picture").replaceChildren(root);
  describeMap(region);
}

export function exportedMap() {
  // The map as it is seen, as one picture that stands alone.
  return fixedMap(spec, leaflet ? liveView(leaflet.map) : fixedView(regionOf(spec.problem), pictureWidth(), MAX_HEIGHT + frame.foot), false);
}

function fixedMap(drawn, view, withTiles = Boolean(layers.tiles)) {
  const { width, height } = view;
  const colours = mapColours();
  const root = svg("svg", { viewBox: `${-frame.left} -1 ${width + frame.left + 2} ${height + frame.foot + 2}`, xmlns: "http://www.w3.org/2000/svg", role: "presentation" });
  root.style.maxWidth = `${width + frame.left + 2}px`;
  const clip = svg("clipPath", { id: "map-edge" }, svg("rect", { width, height }));
  const inside = svg("g", { "clip-path": "url(#map-edge)", role: "presentation" }, ...content(drawn, view, colours, withTiles));
  root.append(clip, inside, drawFrame(view, colours, sizeOf(drawn.problem)));
  root.view = view;
  return root;
}

const sizeOf = (problem) => (problem.kind === "points" ? "" : cellSize(problem.grid));

function content(drawn, view, colours, withTiles) {
  const region = regionOf(drawn.problem);
  const known = region.box ? around : { places: [], land: [], coasts: [], borders: [] };
  const opacity = mapOpacity(!withTiles);
  const draw = drawn.problem.kind === "points" ? drawDensity : drawCells;
  const [cells, above] = draw(view, { ...drawn, region }, colours, opacity);
  const placed = Object.values(drawn.marks).filter((place) => place !== null && place !== undefined);
  const taken = placed.map((place) => view.at(positionOf(region, drawn.problem.kind === "points" ? place : centreOf(region, place))));
  return [
    drawGround(view, known, colours, withTiles),
    cells,
    drawOutlines(view, known, region.box ? layers.own : [], colours),
    ...(region.box ? [drawNames(view, withTiles ? [] : known.places, layers.names, taken, colours)] : []),
    above,
  ];
}

function showLive(region) {
  const key = JSON.stringify(region.box);
  $("picture").classList.add("live");
  if (!leaflet) create();
  const across = $("picture").clientWidth || pictureWidth();
  const size = JSON.stringify([across, key]);
  if (leaflet.size !== size) {
    const view = fixedView(region, across, MAX_HEIGHT + frame.foot);
    const canvas = leaflet.map.getContainer();
    canvas.style.height = `${Math.max(220, view.height)}px`;
    leaflet.map.invalidateSize({ animate: false, pan: false });
    leaflet.size = size;
    fit(region);
  }
  $("map-buttons").hidden = $("map-about").hidden = false;
  redraw();
  describeMap(region);
}

function fit({ box: [west, south, east, north] }) {
  leaflet.map.fitBounds([[south, west], [north, east]], { padding: [PADDING, PADDING], animate: false, maxZoom: CLOSEST });
}

function create() {
  const coarse = matchMedia("(pointer: coarse)").matches; // one finger scrolls the page, two move the map
  const canvas = element("div", { class: "map-canvas" });
  const edges = svg("svg", { class: "map-edges", "aria-hidden": "true" });
  $("picture").replaceChildren(canvas, edges);
  const map = window.L.map(canvas, {
    zoomControl: false, attributionControl: false, keyboard: false, scrollWheelZoom: false, doubleClickZoom: false, boxZoom: false,
    zoomAnimation: false, fadeAnimation: false, inertia: false, zoomSnap: 0, minZoom: 1, maxZoom: CLOSEST, dragging: !coarse, center: [0, 0], zoom: 1,
  });
  if (layers.tiles) layers.tiles(window.L).addTo(map);
  const drawing = svg("svg", { class: "map-drawing", role: "presentation" });
  map.getPanes().overlayPane.append(drawing);
  leaflet = { map, drawing, edges, size: "" };
  map.on("moveend zoom", redraw);
  map.on("move", drawEdges);
  map.on("moveend", ask);
  map.on("click", ({ latlng }) => choose([latlng.lng, latlng.lat]));
  map.on("dblclick", ({ latlng }) => emit("map-name", { longitude: latlng.lng, latitude: latlng.lat }));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // the page scrolls; a pinch on a touchpad arrives with this key
    event.preventDefault();
    map.setZoomAround(map.mouseEventToContainerPoint(event), map.getZoom() - event.deltaY / 100);
  }, { passive: false });
}

function liveView(map) {
  // Without Leaflet's rounding to whole pixels.
  const { x: width, y: height } = map.getSize();
  const origin = map.getPixelOrigin().subtract(map.layerPointToContainerPoint([0, 0]));
  return {
    width,
    height,
    geographic: true,
    at: ([longitude, latitude]) => { const { x, y } = map.project([latitude, longitude]); return [x - origin.x, y - origin.y]; },
    from: ([x, y]) => { const { lng, lat } = map.containerPointToLatLng([x, y]); return [lng, lat]; },
  };
}

export function redraw() {
  if (!spec) return;
  if (!leaflet) { if (regionOf(spec.problem)) showMap(spec); return; }
  const { map, drawing } = leaflet;
  const view = liveView(map);
  window.L.DomUtil.setPosition(drawing, map.containerPointToLayerPoint([0, 0]));
  drawing.setAttribute("width", view.width);
  drawing.setAttribute("height", view.height);
  drawing.replaceChildren(...content(spec, view, mapColours(), Boolean(layers.tiles)));
  map.getContainer().style.background = layers.tiles ? "" : mapColours().land;
  drawEdges();
}

function drawEdges() {
  if (!leaflet || !spec) return;
  const view = liveView(leaflet.map);
  const [width, height] = [view.width + frame.left, view.height + frame.foot];
  for (const [name, value] of Object.entries({ width, height, viewBox: `${-frame.left} 0 ${width} ${height}` })) leaflet.edges.setAttribute(name, value);
  leaflet.edges.replaceChildren(drawFrame(view, mapColours(), sizeOf(spec.problem)));
}

function choose([longitude, latitude]) {
  if (!spec) return;
  const { problem, pick } = spec;
  const region = regionOf(problem);
  if (region.box) emit("map-click", { latitude, longitude });
  const [x, y] = kilometresOf(region, [longitude, latitude]);
  if (problem.kind === "points") {
    pick([Math.max(0, Math.min(region.width, x)), Math.max(0, Math.min(region.height, y))]);
    return;
  }
  const [column, row] = [Math.floor((x / region.width) * region.columns), Math.floor((y / region.height) * region.rows)];
  if (column >= 0 && column < region.columns && row >= 0 && row < region.rows) pick(row * region.columns + column);
}

let waiting = 0;
function ask() {
  clearTimeout(waiting);
  waiting = setTimeout(askNow, around.box ? REST : 0);
}

async function askNow() {
  // Names and outlines of what is seen and of as much again on each side, so that there is something to drag into view.
  if (!spec || !about?.present.some((name) => name !== LOADED)) return;
  const region = regionOf(spec.problem);
  if (!region?.box) return;
  const seen = leaflet ? edgesOf(liveView(leaflet.map)) : boxOf(region);
  const wide = seen[2] - seen[0];
  const known = around.box && seen[0] >= around.box[0] && seen[1] >= around.box[1] && seen[2] <= around.box[2] && seen[3] <= around.box[3];
  if (known && around.box[2] - around.box[0] < 5 * wide) return;
  const high = seen[3] - seen[1];
  const box = [Math.max(-180, seen[0] - wide / 2), Math.max(-85, seen[1] - high / 2), Math.min(180, seen[2] + wide / 2), Math.min(85, seen[3] + high / 2)];
  const mine = (asking += 1);
  try {
    const [west, south, east, north] = box;
    const answer = await post("map/surroundings", { west, south, east, north });
    if (mine !== asking) return;
    around = { box, ...answer };
    redraw();
    emit("surroundings");
  } catch { /* a map without names and outlines is still a map */ }
}

function edgesOf(view) {
  const [[west, south], [east, north]] = [view.from([0, view.height]), view.from([view.width, 0])];
  return [west, south, east, north];
}

export function nearest([longitude, latitude]) {
  // How far from which named place a position is, in words; empty where no name is known.
  const far = (each) => distance([longitude, latitude], [each.longitude, each.latitude], true);
  const best = [...layers.names, ...around.places].map((each) => [far(each), each]).sort((a, b) => a[0] - b[0])[0];
  if (!best || best[0] > 30) return "";
  return best[0] < 0.15 ? `at ${best[1].name}` : `${inUnit(twoDigits(best[0], Math.round), "km")} from ${best[1].name}`;
}

function describeMap(region) {
  const credits = region.box && about ? [...about.credits, layers.credit].filter(Boolean) : [];
  const present = region.box ? about?.missing ?? [] : [];
  const lacks = { "leaflet.js": "cannot be moved", "places.npz": "has no names of places", "outlines.npz": "has no coasts and borders" };
  const missing = present.map((name) => lacks[name]).filter(Boolean);
  $("map-credits").textContent = credits.join(" · ");
  $("map-missing").textContent = missing.length ? `This installation lacks files of the map: it ${missing.join(", ")}.` : "";
  $("map-missing").hidden = !missing.length;
  $("map-about").hidden = !region.box;
  emit("map-shown", Boolean(region.box));
}

export function setUpMap() {
  mapReady();
  $("map-in").addEventListener("click", () => leaflet?.map.zoomIn(1));
  $("map-out").addEventListener("click", () => leaflet?.map.zoomOut(1));
  $("map-fit").addEventListener("click", () => { if (leaflet && spec) fit(regionOf(spec.problem)); });
  on("map-layers", (changed) => {
    Object.assign(layers, changed);
    if (leaflet && "tiles" in changed) {
      leaflet.map.eachLayer((layer) => layer.remove());
      layers.tiles?.(window.L).addTo(leaflet.map);
    }
    redraw();
    if (spec) describeMap(regionOf(spec.problem));
    emit("map-redrawn");
  });
  on("cleared", () => { around = { box: null, places: [], land: [], coasts: [], borders: [] }; hideMap(); });
}
