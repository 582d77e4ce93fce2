// Pages of the grid: as many people as can be seen well. Only their pictures are received; of the
// others there is the sound of those who talk.

const SMALLEST = 150; // pixels: the width of a tile on a phone
const SMALLEST_WIDE = 230; // and on a wide screen
const WIDE = 900;
const ASPECT = 16 / 9;
const GAP = 12;
export const MOST_ON_PAGE = 16;

/** How many tiles fit into so many pixels. */
export function tilesFor(width, height) {
  const smallest = width < WIDE ? SMALLEST : SMALLEST_WIDE;
  const columns = Math.max(1, Math.floor((width + GAP) / (smallest + GAP)));
  const tile = (width - GAP * (columns - 1)) / columns;
  const rows = Math.max(1, Math.floor((height + GAP) / (tile / ASPECT + GAP)));
  return Math.min(Math.max(columns * rows, 2), MOST_ON_PAGE);
}

export class Pages {
  current = 0;
  count = 1;

  /** The items of the present page, of pages of this size; the last page may be gone since. */
  cut(items, size) {
    this.count = Math.max(1, Math.ceil(items.length / size));
    this.current = Math.min(this.current, this.count - 1);
    return items.slice(this.current * size, (this.current + 1) * size);
  }

  /** Whether there is a page so many further on. */
  has(by) {
    return this.current + by >= 0 && this.current + by < this.count;
  }

  /** Turns by so many pages; returns whether there is such a page. */
  turn(by) {
    if (!this.has(by)) return false;
    this.current += by;
    return true;
  }

  get text() {
    return `Page ${this.current + 1} of ${this.count}`;
  }
}
