// What the W3C's tests for geolocation ask for, as far as it applies; each check is true if the browser passes.
(place) => {
  const { geolocation } = navigator;
  const throwsTypeError = (run) => { try { run(); } catch (error) { return error instanceof TypeError; } return false; };
  const one = (method, options) => new Promise((resolve) => geolocation[method](resolve, resolve, options));
  const isError = (error, code) => error instanceof GeolocationPositionError && error.code === code && typeof error.message === "string";
  const wrongArguments = (method) => [
    [], [null], [null, null], [3], [() => {}, 4], [() => {}, () => {}, 4], [{ handleEvent() {} }], [() => {}, { handleEvent() {} }],
  ].every((values) => throwsTypeError(() => geolocation[method](...values)));
  const frame = async (attributes) => {
    const made = Object.assign(document.createElement("iframe"), attributes);
    const loaded = new Promise((resolve) => { made.onload = resolve; });
    document.body.append(made);
    await loaded;
    return made;
  };
  const inFrame = async (attributes) => {
    const answer = new Promise((resolve) => addEventListener("message", ({ data }) => resolve(data), { once: true }));
    await frame(attributes);
    return answer;
  };
  const other = `http://b.localhost:${location.port}/inner`;
  const precise = async (method) => {
    const { coords } = await one(method, { accuracyMode: "precise", enableHighAccuracy: true });
    return coords.latitude === place.latitude && coords.longitude === place.longitude;
  };
  const checks = {
    "getCurrentPosition_TypeError": () => wrongArguments("getCurrentPosition"),
    "watchPosition_TypeError": () => wrongArguments("watchPosition"),
    "clearWatch_TypeError": () =>
      [NaN, -1, 0, 1, 2147483648, Infinity, -Infinity].every((id) => geolocation.clearWatch(id) === undefined) &&
      throwsTypeError(() => geolocation.clearWatch()),
    "getCurrentPosition_permission_allow": async () => (await one("getCurrentPosition")) instanceof GeolocationPosition,
    "getCurrentPosition_IDL": async () => {
      const { coords, ...rest } = await one("getCurrentPosition");
      const position = await one("getCurrentPosition");
      const before = position.coords.latitude;
      position.coords.latitude = 666;
      const kinds = ["altitude", "altitudeAccuracy", "heading", "speed"].map((name) => position.coords[name]);
      return `${position}` === "[object GeolocationPosition]" && `${position.coords}` === "[object GeolocationCoordinates]" &&
        typeof position.timestamp === "number" && position.coords.latitude === before && Object.keys(rest).length === 0 &&
        ["latitude", "longitude", "accuracy"].every((name) => typeof coords[name] === "number") &&
        kinds.every((value) => value === null || typeof value === "number");
    },
    "getCurrentPosition_IDL (errors)": async () => {
      const error = await one("getCurrentPosition", { timeout: 0, maximumAge: 0 });
      return isError(error, 3) && `${error}` === "[object GeolocationPositionError]" &&
        error.PERMISSION_DENIED === 1 && error.POSITION_UNAVAILABLE === 2 && error.TIMEOUT === 3;
    },
    "PositionOptions (enableHighAccuracy of a wrong type)": () =>
      ["boom", 321, -Infinity, { foo: 5 }].every((enableHighAccuracy) => {
        geolocation.getCurrentPosition(() => {}, null, { enableHighAccuracy });
        geolocation.clearWatch(geolocation.watchPosition(() => {}, null, { enableHighAccuracy }));
        return true;
      }),
    "PositionOptions (timeout 0)": async () =>
      isError(await one("getCurrentPosition", { timeout: 0 }), 3) && isError(await one("watchPosition", { timeout: 0 }), 3),
    "PositionOptions (timeout below 0)": async () =>
      isError(await one("getCurrentPosition", { timeout: -100 }), 3) && isError(await one("watchPosition", { timeout: -100 }), 3),
    "PositionOptions (exceptions of getters)": () => {
      const order = [];
      const options = Object.defineProperties({}, Object.fromEntries(["timeout", "maximumAge", "enableHighAccuracy"].map((name) =>
        [name, { get() { order.push(name); if (name === "timeout") throw new RangeError("mine"); } }])));
      try { geolocation.getCurrentPosition(() => {}, null, options); } catch (error) {
        return error instanceof RangeError && order.join() === "enableHighAccuracy,maximumAge,timeout";
      }
      return false;
    },
    "tojson": async () => {
      const position = await one("getCurrentPosition");
      const json = position.toJSON();
      const keys = (value) => Object.keys(Object.getPrototypeOf(value)).filter((key) => typeof value[key] !== "function");
      return json.timestamp === position.timestamp && keys(position.coords).every((key) =>
        position.coords[key] === json.coords[key] && position.coords[key] === position.coords.toJSON()[key]);
    },
    "callbacks: exceptions reach window.onerror, this is undefined": async () => {
      const thrown = new Promise((resolve) => addEventListener("error", (event) => { event.preventDefault(); resolve(event.message); }, { once: true }));
      const self = await new Promise((resolve) => geolocation.getCurrentPosition(function () { "use strict"; resolve(this); throw new Error("mine"); }));
      return self === undefined && (await thrown).includes("mine");
    },
    "callbacks: never before the method returns": async () => {
      let returned = false;
      const late = new Promise((resolve) => geolocation.getCurrentPosition(() => {}, () => resolve(returned), { timeout: 0 }));
      returned = true;
      return late;
    },
    "enabled": () => document.featurePolicy.features().includes("geolocation"),
    "enabled-by-permission-policy-attribute": async () => Array.isArray(await inFrame({ src: other, allow: "geolocation" })),
    "enabled-on-self-origin-by-permissions-policy": async () => Array.isArray(await inFrame({ src: "/inner" })),
    "disabled-by-permissions-policy (frame of another origin)": async () => (await inFrame({ src: other })) === 1,
    "non-fully-active (no answer and no position)": async () => {
      const made = await frame({ src: "/x" });
      const { geolocation: stolen } = made.contentWindow.navigator;
      made.remove();
      return stolen.watchPosition(() => {}, () => {}) === 0;
    },
    "watchPosition-accuracyMode (approximate)": async () => {
      const { coords } = await one("watchPosition", { accuracyMode: "approximate" });
      return ["altitude", "altitudeAccuracy", "heading", "speed"].every((name) => coords[name] === null);
    },
    "watchPosition-accuracyMode (precise)": () => precise("watchPosition"),
    "success": () => precise("getCurrentPosition"),
  };
  return (async () => {
    const results = {};
    for (const [name, check] of Object.entries(checks)) {
      try { results[name] = await check(); } catch (error) { results[name] = `${error}`; }
    }
    return results;
  })();
}
