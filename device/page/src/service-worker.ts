/** Keeps every file of the page, so that it works offline. It asks for nothing but the files of its own folder. */

/** The digest of all files, which `privacygames device page` writes above this script: a changed folder is a new cache. */
declare const VERSION: string;

const FILES = [
  "./", "index.html", "look.css", "page.js", "worker.js", "app.webmanifest", "icon-128.png", "icon-512.png", "mechanism.pgd", "settings.json",
];
const PREFIX = "protected-position-";
const worker = self as unknown as ServiceWorkerGlobalScope;

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

interface ServiceWorkerGlobalScope {
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install" | "activate", listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
}

async function keepAll(): Promise<void> {
  const cache = await caches.open(PREFIX + VERSION);
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
  await worker.skipWaiting();
}

async function removeOthers(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== PREFIX + VERSION) await caches.delete(name);
  await worker.clients.claim();
}

async function respond(request: Request): Promise<Response> {
  const cache = await caches.open(PREFIX + VERSION);
  return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}

worker.addEventListener("install", (event) => event.waitUntil(keepAll()));
worker.addEventListener("activate", (event) => event.waitUntil(removeOthers()));
worker.addEventListener("fetch", (event) => {
  if (new URL(event.request.url).origin === location.origin) event.respondWith(respond(event.request));
});
