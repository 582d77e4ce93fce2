// The bars on the tiles, and the answer to “why is it blurred?”: both from `subscription.explain`.

import { read } from "./why.js";

const byID = (id) => document.getElementById(id);
/** So many pictures are asked about at a time; with more, the others have their turn after. */
const MOST_AT_ONCE = 8;

export class Signals {
  #next = 0;
  #asking = false;
  #shown = null; // the tile that the dialog is about

  constructor() {
    byID("why").addEventListener("close", () => { this.#shown = null; });
  }

  /** Asks sfud about these tiles' pictures, and updates their bars. */
  async refresh(call, tiles) {
    if (this.#asking || document.hidden) return;
    this.#asking = true;
    const asked = tiles.filter(({ model }) => !model.self && model.videoOn && model.videoTrack);
    for (const tile of tiles) if (!asked.includes(tile)) tile.signal(null);
    const first = asked.length > MOST_AT_ONCE ? this.#next % asked.length : 0;
    this.#next = first + MOST_AT_ONCE;
    const turn = [...asked, ...asked].slice(first, first + Math.min(MOST_AT_ONCE, asked.length));
    await Promise.allSettled(turn.map((tile) => this.#ask(call, tile)));
    this.#asking = false;
  }

  async #ask(call, tile) {
    const { stream, name } = tile.model;
    const explanation = await call.explain(stream.stream).catch(() => null);
    if (tile.model.stream?.stream !== stream.stream) return; // it shows another one meanwhile
    tile.signal(explanation && read(explanation, name));
    if (this.#shown === tile) this.#fill(tile);
  }

  /** Opens the dialog about a tile's picture; it follows what sfud says. */
  open(tile) {
    if (!tile.reading) return;
    this.#shown = tile;
    this.#fill(tile);
    byID("why").showModal();
  }

  close() {
    byID("why").close();
  }

  #fill({ reading }) {
    if (!reading) return;
    byID("why-title").textContent = reading.title;
    byID("why-text").textContent = reading.text;
    byID("why-more").replaceChildren(...reading.more.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }));
  }
}
