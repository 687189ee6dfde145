// Notes every number that passes a built-in function which a page can replace.
() => {
  const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
  const seen = (window.seen = { __proto__: null });
  const note = (value) => { if (typeof value === "number") seen[value] = true; };
  const spy = (owner, name) => {
    const { value, get } = getOwnPropertyDescriptor(owner, name) ?? {};
    const wrap = (method) => function () {
      note(this);
      for (let index = 0; index < arguments.length; index += 1) {
        const given = arguments[index];
        note(given);
        if (typeof given === "object" && given !== null) for (const key in given) note(getOwnPropertyDescriptor(given, key)?.value);
      }
      const result = apply(method, this, arguments);
      note(result);
      if (typeof result === "object" && result !== null) for (const key in result) note(getOwnPropertyDescriptor(result, key)?.value);
      return result;
    };
    if (typeof value === "function") owner[name] = wrap(value);
    else if (get) defineProperty(owner, name, { get: wrap(get), configurable: true });
  };
  for (const name of ["then", "catch", "finally"]) spy(Promise.prototype, name);
  for (const name of ["get", "set", "has"]) { spy(Map.prototype, name); spy(WeakMap.prototype, name); }
  for (const name of ["push", "map", "forEach", "slice", Symbol.iterator]) spy(Array.prototype, name);
  for (const name of ["call", "apply", "bind"]) spy(Function.prototype, name);
  for (const name of ["parse", "stringify"]) spy(JSON, name);
  for (const name of ["postMessage", "start", "close", "onmessage"]) spy(MessagePort.prototype, name);
  for (const name of ["dispatchEvent", "addEventListener"]) spy(EventTarget.prototype, name);
  for (const name of ["data", "ports"]) spy(MessageEvent.prototype, name);
  for (const name of ["apply", "construct", "defineProperty", "getOwnPropertyDescriptor", "setPrototypeOf"]) spy(Reflect, name);
  for (const name of ["create", "assign", "keys"]) spy(Object, name);
  for (const name of ["setTimeout", "queueMicrotask", "structuredClone"]) spy(window, name);
  for (const name of ["latitude", "coords", "0", "2", "get"]) {
    defineProperty(Object.prototype, name, { set(value) { note(value); }, get() { note(this); }, configurable: true });
  }
}
