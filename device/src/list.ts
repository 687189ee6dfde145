/** A list of this length, made of each position in turn. */
export function list<Item>(length: number, make: (position: number) => Item): Item[] {
  return Array.from({ length }, (_, position) => make(position));
}
