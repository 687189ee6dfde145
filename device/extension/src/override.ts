/**
 * Replaces the geolocation of a page. Runs in the page's own world, before its first script.
 *
 * Nothing here is trusted: a page that breaks into this file gets the channel on which it may ask for its own outputs, and
 * nothing else. The true coordinate never reaches this world. What is done here so that pages find the behaviour of the
 * standard: argument checks, exceptions, own properties and `toString` as the browser has them, and callbacks without our
 * frames on the stack. Everything used later is captured now, because a page may replace any method of any prototype.
 */
import { HANDSHAKE, type Answer, type ErrorCode, type Mode, type Question } from "./channel.js";

type Callable = (...values: never[]) => unknown;
type Anything = Record<PropertyKey, unknown>;

interface Options {
  readonly enableHighAccuracy: boolean;
  readonly maximumAge: number;
  readonly timeout: number;
}

interface Request {
  readonly success: Callable;
  readonly error: Callable | null;
  readonly options: Options;
  /** The number of a watch; 0 for a single question. */
  watch: number;
  /** The timer that is set for it: a timeout, or a watch's next question. */
  alarm: number;
  /** The browser's own number of the watch, where the site has the browser's own behaviour. */
  nativeWatch: number;
  /** What a watch was told last. */
  latitude: number | undefined;
  longitude: number | undefined;
}

/** Milliseconds between two questions of a watch: constant, so that when an output is told does not depend on a movement. */
const WATCH_INTERVAL = 60_000;

/** Largest value of WebIDL's `unsigned long`, the standard's default timeout. */
const LARGEST = 0xffff_ffff;

const MESSAGES: Record<ErrorCode, string> = FIREFOX
  ? { 1: "User denied geolocation prompt", 2: "Unknown error acquiring position", 3: "Position acquisition timed out" }
  : { 1: "User denied Geolocation", 2: "Position unavailable", 3: "Timeout expired" };

/** `f(self, ...values)` for a method `f`, immune against a page that replaces `Function.prototype.call`. */
const uncurry = Function.prototype.bind.bind(Function.prototype.call) as (method: unknown) => (self: unknown, ...values: unknown[]) => unknown;

const { apply, getOwnPropertyDescriptor, defineProperty, setPrototypeOf } = Reflect;
const { min, max, round } = Math;
const now = Date.now;
const NativeProxy = Proxy;
const schedule = setTimeout.bind(window) as (run: () => void, delay: number) => number;
const unschedule = clearTimeout.bind(window) as (alarm: number) => void;
const enqueue = queueMicrotask.bind(window);
const bind = uncurry(Function.prototype.bind) as (target: Callable, self: undefined, ...values: unknown[]) => () => void;
const nativeToString = Function.prototype.toString;
const chain = uncurry(Promise.prototype.then) as (promise: unknown, next: (value: unknown) => unknown) => unknown;
const captureStack = (Error as { captureStackTrace?: (error: object, above: Callable) => void }).captureStackTrace;
const NativeError = Error;
const isInstance = uncurry(Function.prototype[Symbol.hasInstance]);
const getFrom = uncurry(WeakMap.prototype.get);
const setIn = uncurry(WeakMap.prototype.set);
const Controller = AbortController;

const originals = new WeakMap<object, Callable>();
const told = new WeakMap<object, Anything>();

/** Runs a native function; its exceptions keep the stack that a native caller would have seen. */
function natively(above: Callable, native: Callable, self: unknown, values: ArrayLike<unknown>): unknown {
  try {
    return apply(native, self as object, values as never);
  } catch (error) {
    if (captureStack !== undefined && isInstance(NativeError, error)) captureStack(error as object, above);
    throw error;
  }
}

/** Puts `behaviour` in place of a native function: a proxy of it, so that its shape is the native one's. */
function wrap(native: Callable, behaviour: (self: unknown, values: ArrayLike<unknown>, trap: Callable) => unknown): Callable {
  const handler = {
    __proto__: null,
    apply: function trap(_target: Callable, self: unknown, values: ArrayLike<unknown>): unknown {
      return behaviour(self, values, trap as Callable);
    },
  };
  const wrapper = new NativeProxy(native, handler as unknown as ProxyHandler<Callable>);
  setIn(originals, wrapper, native);
  return wrapper;
}

function replace(owner: object, name: string, part: "value" | "get", behaviour: Parameters<typeof wrap>[1]): Callable | undefined {
  const descriptor = getOwnPropertyDescriptor(owner, name);
  const native = descriptor?.[part] as Callable | undefined;
  if (descriptor === undefined || native === undefined || !descriptor.configurable) return undefined;
  const changed = { __proto__: null, ...descriptor, [part]: wrap(native, behaviour) };
  defineProperty(owner, name, changed as PropertyDescriptor);
  return native;
}

// Objects that the page receives: a platform object that cannot be cloned, with the interface's prototype and no own property.

const valuesOf = (object: unknown): Anything | undefined =>
  (typeof object === "object" && object !== null ? getFrom(told, object) : undefined) as Anything | undefined;

/** Lets the attributes of an interface read our values where an object is one of ours. */
function describe(owner: object): void {
  const attributes = attributesOf(owner);
  for (let index = 0; index < attributes.length; index += 1) {
    const name = attributes[index] as string;
    const native = replace(owner, name, "get", (self, values, trap) => {
      const own = valuesOf(self);
      return own === undefined ? natively(trap, native as Callable, self, values) : own[name];
    });
  }
  const native = replace(owner, "toJSON", "value", (self, values, trap) =>
    valuesOf(self) === undefined ? natively(trap, native as Callable, self, values) : toJson(self as object),
  );
}

function attributesOf(owner: object): string[] {
  const names: string[] = [];
  for (const name of Reflect.ownKeys(owner)) {
    const descriptor = getOwnPropertyDescriptor(owner, name);
    if (typeof name === "string" && descriptor?.get !== undefined && descriptor.enumerable) names[names.length] = name;
  }
  return names;
}

/** The browser's own order of what `toJSON` gives. */
const POSITION_KEYS = FIREFOX ? ["coords", "timestamp"] : ["timestamp", "coords"];
const COORDINATE_KEYS = FIREFOX
  ? ["latitude", "longitude", "altitude", "accuracy", "altitudeAccuracy", "heading", "speed"]
  : ["accuracy", "latitude", "longitude", "altitude", "altitudeAccuracy", "heading", "speed"];

function toJson(object: object): Anything {
  const own = valuesOf(object) as Anything;
  const keys = "coords" in own ? POSITION_KEYS : COORDINATE_KEYS;
  const result: Anything = {};
  for (let index = 0; index < keys.length; index += 1) {
    const name = keys[index] as string;
    const value = name === "coords" ? toJson(own[name] as object) : own[name];
    defineProperty(result, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true } as PropertyDescriptor);
  }
  return result;
}

function create(owner: object, values: Anything): object {
  const object = new Controller();
  setPrototypeOf(object, owner);
  setIn(told, object, { __proto__: null, ...values });
  return object;
}

const geolocation = navigator.geolocation;
const geolocationPrototype = Geolocation.prototype;
const positionPrototype = GeolocationPosition.prototype;
const coordinatesPrototype = GeolocationCoordinates.prototype;
const errorPrototype = GeolocationPositionError.prototype;
const { getCurrentPosition, watchPosition, clearWatch } = geolocationPrototype as unknown as Record<string, Callable>;
const windowOf = uncurry(getOwnPropertyDescriptor(Document.prototype, "defaultView")?.get);
const page = document;

describe(positionPrototype);
describe(coordinatesPrototype);
describe(errorPrototype);

// The channel.

const { port1, port2 } = new MessageChannel();
const send = bind(MessagePort.prototype.postMessage as Callable, port1 as never) as unknown as (question: Question) => void;
const dataOf = uncurry(getOwnPropertyDescriptor(MessageEvent.prototype, "data")?.get) as (event: Event) => Answer;
const waiting: Record<number, (answer: Answer) => void> = Object.create(null) as Record<number, never>;
let asked = 0;

port1.onmessage = (event) => {
  const answer = dataOf(event);
  const next = waiting[answer[0]];
  delete waiting[answer[0]];
  next?.(answer);
};
window.dispatchEvent(new MessageEvent(HANDSHAKE, { ports: [port2] }));

function ask(question: Question[1], next: (answer: Answer) => void): void {
  asked += 1;
  waiting[asked] = next;
  send([asked, question]);
}

// The requests.

let watches = 0;
let last: { readonly position: object; readonly time: number } | undefined;
const active: Record<number, Request> = Object.create(null) as Record<number, never>;

/** Calls back as the browser does: in a task of its own, without `this`, exceptions reported to the window. */
function callBack(callback: Callable | null, value: object): void {
  if (callback !== null) enqueue(bind(callback, undefined, value));
}

function fail(request: Request, code: ErrorCode): void {
  callBack(request.error, create(errorPrototype, { code, message: MESSAGES[code] }));
}

function isWanted(request: Request): boolean {
  return request.watch === 0 || active[request.watch] === request;
}

/** Asks once; a watch asks again after each answer. */
function start(request: Request): void {
  const { maximumAge, timeout } = request.options;
  if (last !== undefined && request.watch === 0 && maximumAge > 0 && now() - last.time <= maximumAge) {
    callBack(request.success, last.position);
    return;
  }
  let isOpen = true;
  if (timeout < LARGEST) {
    request.alarm = schedule(() => {
      isOpen = false;
      if (!isWanted(request)) return;
      fail(request, 3);
      repeat(request);
    }, timeout);
  }
  if (timeout === 0) return; // no answer is that fast, so nothing is asked and nothing is charged
  ask("position", (answer) => {
    if (!isOpen || !isWanted(request)) return;
    unschedule(request.alarm);
    if (answer[1] === "native") {
      startNative(request);
      return;
    }
    if (answer[1] === "told") tell(request, answer[2], answer[3], answer[4], answer[5]);
    else fail(request, answer[1] === "failed" ? answer[2] : 2);
    repeat(request);
  });
}

function repeat(request: Request): void {
  if (request.watch !== 0) request.alarm = schedule(() => isWanted(request) && start(request), WATCH_INTERVAL);
}

function tell(request: Request, latitude: number, longitude: number, accuracy: number, timestamp: number): void {
  if (request.watch !== 0 && request.latitude === latitude && request.longitude === longitude) return; // a watch hears of changes
  request.latitude = latitude;
  request.longitude = longitude;
  const unknown = { altitude: null, altitudeAccuracy: null, heading: null, speed: null };
  const coords = create(coordinatesPrototype, { latitude, longitude, accuracy, ...unknown });
  const position = create(positionPrototype, { coords, timestamp });
  last = { position, time: now() };
  callBack(request.success, position);
}

/** The user lets this site have what the browser gives: the browser's own function is called. */
function startNative(request: Request): void {
  const values = [request.success, request.error, request.options] as never;
  if (request.watch === 0) apply(getCurrentPosition as Callable, geolocation as never, values);
  else request.nativeWatch = apply(watchPosition as Callable, geolocation as never, values) as number;
}

/** Checks the arguments in WebIDL's order; whatever the browser would refuse, it refuses itself. */
function read(native: Callable, self: unknown, values: ArrayLike<unknown>, trap: Callable): Request | undefined {
  natively(trap, clearWatch as Callable, self, [0]); // throws unless `self` is a Geolocation
  const success = values[0];
  const error = values[1];
  const options = values[2];
  const isOptional = (value: unknown, type: string): boolean => value === undefined || value === null || typeof value === type;
  if (typeof success !== "function" || !isOptional(error, "function") || !(isOptional(options, "object") || typeof options === "function")) {
    natively(trap, native, self, values);
    return undefined;
  }
  const given = (options ?? { __proto__: null }) as Anything;
  const enableHighAccuracy = !!given["enableHighAccuracy"];
  const maximumAge = clamp(given["maximumAge"], 0);
  const timeout = clamp(given["timeout"], LARGEST);
  return {
    success: success as Callable,
    error: (error ?? null) as Callable | null,
    options: { __proto__: null, enableHighAccuracy, maximumAge, timeout } as Options,
    watch: 0,
    alarm: 0,
    nativeWatch: 0,
    latitude: undefined,
    longitude: undefined,
  };
}

/** WebIDL's `[Clamp] unsigned long`. */
function clamp(value: unknown, standard: number): number {
  if (value === undefined) return standard;
  const number = +(value as number);
  return number !== number ? 0 : round(min(max(number, 0), LARGEST));
}

/** Whether the document has been taken out of its window: the browser's own functions only ever fail there. */
function isDetached(): boolean {
  return windowOf(page) === null;
}

replace(geolocationPrototype, "getCurrentPosition", "value", (self, values, trap) => {
  if (isDetached()) return natively(trap, getCurrentPosition as Callable, self, values);
  const request = read(getCurrentPosition as Callable, self, values, trap);
  if (request !== undefined) start(request);
  return undefined;
});

replace(geolocationPrototype, "watchPosition", "value", (self, values, trap) => {
  if (isDetached()) return natively(trap, watchPosition as Callable, self, values);
  const request = read(watchPosition as Callable, self, values, trap);
  if (request === undefined) return 0;
  watches += 1;
  request.watch = watches;
  active[watches] = request;
  start(request);
  return request.watch;
});

replace(geolocationPrototype, "clearWatch", "value", (self, values, trap) => {
  natively(trap, clearWatch as Callable, self, values.length === 0 ? [] : [0]);
  const id = (values[0] as number) | 0;
  const request = active[id];
  if (request === undefined) return undefined;
  delete active[id];
  unschedule(request.alarm);
  if (request.nativeWatch !== 0) apply(clearWatch as Callable, geolocation as never, [request.nativeWatch] as never);
  return undefined;
});

// The state of the permission: what the site gets, not what the browser would do.

const states = new WeakMap<object, string>();
const STATE: Record<Mode, string | undefined> = { protected: "granted", refuse: "denied", exact: undefined };
const NativePromise = Promise;

if (typeof PermissionStatus === "function") {
  const statusPrototype = PermissionStatus.prototype;
  const nameOf = uncurry(getOwnPropertyDescriptor(statusPrototype, "name")?.get);

  const query = replace(Permissions.prototype, "query", "value", (self, values, trap) =>
    chain(natively(trap, query as Callable, self, values), (status) => {
      if (nameOf(status) !== "geolocation") return status;
      return new NativePromise((resolve) => {
        ask("mode", (answer) => {
          const state = answer[1] === "mode" ? STATE[answer[2]] : undefined;
          if (state !== undefined) setIn(states, status, state);
          resolve(status);
        });
      });
    }),
  );

  const state = replace(statusPrototype, "state", "get", (self, values, trap) => {
    const own = typeof self === "object" && self !== null ? getFrom(states, self) : undefined;
    return own ?? natively(trap, state as Callable, self, values);
  });
}

// Last: what has been replaced prints as what it replaces.

replace(Function.prototype, "toString", "value", (self, values, trap) => {
  const known = typeof self === "function" ? getFrom(originals, self) : undefined;
  return natively(trap, nativeToString as Callable, known ?? self, values);
});
