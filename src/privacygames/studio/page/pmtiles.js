// Reads pictures from a PMTiles file (version 3) on the user's disk: https://github.com/protomaps/PMTiles describes it.
const HEADER = 127; // bytes
const MOST_DIRECTORY = 32 * 2 ** 20; // bytes, once decompressed
const [NONE, GZIP] = [1, 2];
const KINDS = { 2: "image/png", 3: "image/jpeg", 4: "image/webp", 5: "image/avif" };

export async function openPmtiles(file) {
  const head = new DataView(await file.slice(0, HEADER).arrayBuffer());
  const name = String.fromCharCode(...new Uint8Array(head.buffer.slice(0, 7)));
  if (head.byteLength < HEADER || name !== "PMTiles" || head.getUint8(7) !== 3) throw new Error("This is not a PMTiles file of version 3.");
  const kind = KINDS[head.getUint8(99)];
  if (!kind) throw new Error("This file has vector tiles. Only PMTiles with pictures (PNG, JPEG, WebP) are shown; for outlines use a GeoJSON file.");
  const number = (at) => Number(head.getBigUint64(at, true));
  const [root, rootLength, leaves, data] = [8, 16, 40, 56].map(number);
  const [compression, tileCompression] = [head.getUint8(97), head.getUint8(98)];
  const directories = new Map();
  async function directory(offset, length) {
    if (!directories.has(offset)) directories.set(offset, entries(await content(file, offset, length, compression)));
    return directories.get(offset);
  }
  async function tile(z, x, y) {
    const id = tileId(z, x, y);
    let [offset, length] = [root, rootLength];
    for (let depth = 0; depth < 4; depth += 1) {
      const entry = latest(await directory(offset, length), id);
      if (!entry) return null;
      if (entry.run > 0) {
        if (id >= entry.id + entry.run) return null;
        const bytes = await content(file, data + entry.offset, entry.length, tileCompression);
        return new Blob([bytes], { type: kind });
      }
      [offset, length] = [leaves + entry.offset, entry.length];
    }
    return null;
  }
  return { minZoom: head.getUint8(100), maxZoom: head.getUint8(101), tile };
}

async function content(file, offset, length, compression) {
  const part = file.slice(offset, offset + length);
  if (compression === NONE) return new Uint8Array(await part.arrayBuffer());
  if (compression !== GZIP) throw new Error("This PMTiles file is compressed in a way that this page does not read.");
  const chunks = [];
  let size = 0;
  const reader = part.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST_DIRECTORY) throw new Error("This PMTiles file has parts that are too large.");
    chunks.push(value);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function entries(bytes) {
  // Columns of variable-length integers: steps of identifiers, run lengths, lengths, offsets.
  let at = 0;
  const next = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      if (at >= bytes.length) throw new Error("This PMTiles file is damaged.");
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  };
  const count = next();
  if (count > bytes.length) throw new Error("This PMTiles file is damaged.");
  let id = 0;
  const all = Array.from({ length: count }, () => ({ id: (id += next()) }));
  for (const entry of all) entry.run = next();
  for (const entry of all) entry.length = next();
  all.forEach((entry, i) => {
    const value = next();
    entry.offset = value === 0 && i > 0 ? all[i - 1].offset + all[i - 1].length : value - 1;
  });
  return all;
}

function latest(all, id) {
  // The last entry that does not begin after a tile.
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].id <= id) low = middle + 1;
    else high = middle;
  }
  return all[low - 1];
}

function tileId(z, x, y) {
  // The position of a tile on a Hilbert curve, after those of smaller zooms.
  let id = (4 ** z - 1) / 3;
  for (let side = 2 ** (z - 1); side >= 1; side /= 2) {
    const [right, up] = [Math.floor(x / side) % 2, Math.floor(y / side) % 2];
    id += side * side * ((3 * right) ^ up);
    if (up === 0) {
      if (right === 1) { x = side - 1 - (x % side); y = side - 1 - (y % side); }
      [x, y] = [y, x];
    }
  }
  return id;
}
