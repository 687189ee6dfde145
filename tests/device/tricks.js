/**
 * What a page tries in order to learn the position. Each gives a position, or the code of an error. A test gives ASK, the text of a
 * function that asks once.
 */
const ask = (geolocation, method = geolocation.getCurrentPosition, options = {}) =>
  new Promise((resolve) =>
    method.call(geolocation, ({ coords }) => resolve([coords.latitude, coords.longitude]), ({ code }) => resolve(code), options),
  );
const frame = (attributes, name = "iframe") => {
  const made = Object.assign(document.createElement(name), attributes);
  document.body.append(made);
  return made;
};
const loaded = (made) => new Promise((resolve) => made.addEventListener("load", () => resolve(made), { once: true }));
const message = () => new Promise((resolve) => addEventListener("message", ({ data }) => resolve(data), { once: true }));
const inFrame = (attributes) => {
  const answer = message();
  frame(attributes);
  return answer;
};
const script = `<script>(${ASK})().then((answer) => parent.postMessage(answer, "*"))</` + "script>";
const elsewhere = `http://b.localhost:${location.port}/inner`;
const blob = () => URL.createObjectURL(new Blob([script], { type: "text/html" }));
const sandboxed = { sandbox: "allow-scripts", allow: "geolocation *" };

const TRICKS = {
  "a new frame, at once": () => ask(frame({}).contentWindow.navigator.geolocation),
  "a new frame's method on this window": () =>
    ask(navigator.geolocation, frame({}).contentWindow.Geolocation.prototype.getCurrentPosition),
  "a frame before it loads": () => ask(frame({ src: "/x" }).contentWindow.navigator.geolocation),
  "a frame's method, before it loads": () =>
    ask(navigator.geolocation, frame({ src: "/x" }).contentWindow.navigator.geolocation.getCurrentPosition),
  "a javascript: frame": () => ask(frame({ src: "javascript:1" }).contentWindow.navigator.geolocation),
  "srcdoc": async () => ask((await loaded(frame({ srcdoc: "x" }))).contentWindow.navigator.geolocation),
  "srcdoc's script": () => inFrame({ srcdoc: script }),
  "a frame's script": () => inFrame({ src: "/inner" }),
  "a blob: frame": () => inFrame({ src: blob() }),
  "a data: frame": () => inFrame({ allow: "geolocation", src: `data:text/html,${encodeURIComponent(script)}` }),
  "a sandboxed frame": () => inFrame({ ...sandboxed, srcdoc: script }),
  "a sandboxed frame of a site": () => inFrame({ ...sandboxed, src: "/inner" }),
  "a frame of another site": () => inFrame({ allow: "geolocation *", src: elsewhere }),
  "a frame of another site without allow": () => inFrame({ src: elsewhere }),
  "an object": async () => ask((await loaded(frame({ data: "/x" }, "object"))).contentWindow.navigator.geolocation),
  "a popup": () => ask(window.open("about:blank").navigator.geolocation),
  "a popup before it loads": () => ask(window.open("/x").navigator.geolocation),
  "a popup's method": () => ask(navigator.geolocation, window.open("/x").Geolocation.prototype.getCurrentPosition),
  "document.open": () => {
    const made = frame({});
    made.contentDocument.open();
    made.contentDocument.write("<p>x");
    made.contentDocument.close();
    return ask(made.contentWindow.navigator.geolocation);
  },
  "walking up the prototypes": () => {
    for (let object = navigator.geolocation; object; object = Object.getPrototypeOf(object)) {
      const method = Object.getOwnPropertyDescriptor(object, "getCurrentPosition")?.value;
      if (method) return ask(navigator.geolocation, method);
    }
  },
  "the constructor": () =>
    ask(navigator.geolocation, Object.getPrototypeOf(navigator.geolocation).constructor.prototype.getCurrentPosition),
  "deleting the override": () => {
    delete Geolocation.prototype.getCurrentPosition;
    return navigator.geolocation.getCurrentPosition === undefined ? 2 : ask(navigator.geolocation);
  },
  "watching": () => ask(navigator.geolocation, navigator.geolocation.watchPosition),
  "high accuracy": () =>
    ask(navigator.geolocation, undefined, { enableHighAccuracy: true, maximumAge: 0, accuracyMode: "precise" }),
};
