// Positions as people write them: decimal degrees, degrees and minutes, or an address copied from a map.
const MAP_LINKS = [
  /!3d(-?\d+(?:\.\d+)?)!4d(-?\d+(?:\.\d+)?)/, // the place of a Google Maps address comes before the middle of its map
  /[?&#](?:q|ll|query|destination|center|cp|sll|daddr)=(?:loc:)?(-?\d+(?:\.\d+)?)(?:,|%2C|~|\+|%20)+(-?\d+(?:\.\d+)?)/i,
  /[?&#]mlat=(-?\d+(?:\.\d+)?)&(?:amp;)?mlon=(-?\d+(?:\.\d+)?)/i,
  /#map=[\d.]+\/(-?\d+(?:\.\d+)?)\/(-?\d+(?:\.\d+)?)/,
  /@(-?\d+(?:\.\d+)?),(-?\d+(?:\.\d+)?)/,
  /^geo:(-?\d+(?:\.\d+)?),(-?\d+(?:\.\d+)?)/i,
];
const AXIS = { N: ["latitude", 1], S: ["latitude", -1], E: ["longitude", 1], O: ["longitude", 1], W: ["longitude", -1] };
const WAYS = "Write it as 39.9, 116.4 (north first), as 39°54′N 116°24′E, or paste a link from a map.";

export class PositionError extends Error {}

export function parsePosition(text) {
  // {latitude, longitude}; what it says when it cannot be read never repeats the text.
  const written = text.trim().replace(/[−–]/g, "-").replace(/[\u00a0\u2009\u202f]/g, " ");
  if (!written) throw new PositionError("Say where you are first: type a position, or click on the map.");
  const numbers = fromLink(written) ?? fromLetters(written) ?? fromDecimals(written);
  if (!numbers) throw new PositionError(`This position cannot be read. ${WAYS}`);
  const [latitude, longitude] = numbers;
  if (!(Math.abs(latitude) <= 90)) throw new PositionError("The latitude comes first, from −90 (south) to 90 (north): are the two numbers exchanged?");
  if (!(Math.abs(longitude) <= 180)) throw new PositionError("The second number is the longitude, from −180 (west) to 180 (east).");
  return { latitude, longitude };
}

export function parsePlane(text) {
  // {x, y} in kilometres, on a map that is not a part of the Earth.
  const numbers = fromDecimals(text.trim());
  if (!text.trim()) throw new PositionError("Say where you are first: type how many kilometres east and north, or click on the map.");
  if (!numbers) throw new PositionError("Write it as 3.5, 2.1: kilometres east and north of the corner at the bottom left.");
  return { x: numbers[0], y: numbers[1] };
}

function fromLink(text) {
  if (!/^(https?:|geo:|www\.)/i.test(text)) return null;
  for (const link of MAP_LINKS) {
    const match = text.match(link);
    if (match) return [Number(match[1]), Number(match[2])];
  }
  throw new PositionError("This link has no position in it: open the place on the map, and copy the link again. Short links have none.");
}

function fromDecimals(text) {
  const comma = /^[([]?\s*(-?\d+,\d+)\s*(?:[;/]|,?\s+)\s*(-?\d+,\d+)\s*[)\]]?$/; // 39,9; 116,4
  const point = /^[([]?\s*([-+]?\d+(?:\.\d+)?)\s*°?\s*(?:[,;/]|\s)\s*([-+]?\d+(?:\.\d+)?)\s*°?\s*[)\]]?$/;
  const match = text.match(comma) ?? text.match(point);
  return match && [Number(match[1].replace(",", ".")), Number(match[2].replace(",", "."))];
}

function fromLetters(text) {
  // Degrees, with minutes and seconds or without, and a letter before or after each: N 39° 54.5′, E 116° 24′ 30″.
  const upper = text.toUpperCase().replace(/NORTH/g, "N").replace(/SOUTH/g, "S").replace(/EAST/g, "E").replace(/WEST/g, "W");
  if (!/[NS]/.test(upper) || !/[EOW]/.test(upper) || /[^NSEOW\d\s.,;:°º'’′"”″-]/.test(upper)) return null;
  const before = /^[NSEOW]/.test(upper);
  const parts = upper.split(before ? /(?=[NSEOW])/ : /(?<=[NSEOW])/).filter((part) => /\d/.test(part));
  const axes = {};
  for (const part of parts) {
    const letter = part.match(/[NSEOW]/)?.[0];
    const values = (part.match(/\d+(?:[.,]\d+)?/g) ?? []).map((value) => Number(value.replace(",", ".")));
    if (!letter || values.length < 1 || values.length > 3 || part.includes("-") || values.slice(1).some((value) => value >= 60)) return null;
    const [axis, sign] = AXIS[letter];
    if (axis in axes) return null;
    axes[axis] = sign * (values[0] + (values[1] ?? 0) / 60 + (values[2] ?? 0) / 3600);
  }
  return "latitude" in axes && "longitude" in axes ? [axes.latitude, axes.longitude] : null;
}
