// A position as a page receives it: its texts, properties and behaviour, without its values.
() => new Promise((resolve) => navigator.geolocation.getCurrentPosition(function (position) {
  const { coords } = position;
  const clone = (value) => { try { structuredClone(value); return "cloned"; } catch ({ name }) { return name; } };
  const strict = (function () { "use strict"; try { coords.latitude = 1; return "set"; } catch ({ name }) { return name; } })();
  resolve(JSON.stringify({
    texts: [`${position}`, `${coords}`], own: [Reflect.ownKeys(position), Reflect.ownKeys(coords)],
    keys: [Object.keys(position.toJSON()), Object.keys(coords.toJSON())], clone: [clone(position), clone(coords)], strict,
    kinds: Object.fromEntries(Object.entries(coords.toJSON()).map(([key, value]) => [key, value === null ? "null" : typeof value])),
    instances: [position instanceof GeolocationPosition, coords instanceof GeolocationCoordinates],
    same: position.coords === position.coords, time: typeof position.timestamp, self: this === window,
    frames: new Error().stack.split("\n").filter((line) => line.includes("extension")).length,
  }));
}))
