// The shape of every interface that the extension touches: what a page can tell it from the browser by.
() => {
  const shape = (owner) => Reflect.ownKeys(owner).map((key) => {
    const { value, get, set, ...flags } = Object.getOwnPropertyDescriptor(owner, key);
    const method = value ?? get;
    if (typeof method !== "function" || key === "constructor") return [String(key), typeof value, flags];
    const thrown = (run) => { try { run(); return "nothing"; } catch (error) { return `${error.name}: ${error.message}`; } };
    return [String(key), flags, method.name, method.length, method.toString(), Function.prototype.toString.call(method),
      Reflect.ownKeys(method).map(String), Object.getPrototypeOf(method) === Function.prototype, `${set}`,
      thrown(() => method.call({})), thrown(() => method.call(owner)), thrown(() => new method()), thrown(() => class extends method {})];
  });
  return JSON.stringify({
    geolocation: shape(Geolocation.prototype), position: shape(GeolocationPosition.prototype),
    coordinates: shape(GeolocationCoordinates.prototype), error: shape(GeolocationPositionError.prototype),
    permissions: shape(Permissions.prototype), status: shape(PermissionStatus.prototype),
    own: Reflect.ownKeys(navigator.geolocation), navigator: Reflect.ownKeys(navigator),
    text: Object.getOwnPropertyDescriptor(Function.prototype, "toString"), print: `${Function.prototype.toString}`,
    names: Reflect.ownKeys(window).filter((name) => typeof name === "string" && !/^\d+$/.test(name)).sort(),
    attributes: [...document.documentElement.attributes].length, scripts: document.scripts.length,
  });
}
