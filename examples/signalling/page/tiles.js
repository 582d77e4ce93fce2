// The tiles: one for each participant, one for each shared screen, laid out to fill the stage.

import { canFloat } from "./pip.js";

const ASPECT = 16 / 9;
const GAP = 12; // pixels, as in style.css

/** Keeps one element for each tile in step with the call. */
export class Tiles {
  #stage;
  #tiles = new Map(); // key → Tile

  #use;

  /** `use(tool, tile)` is called for a tile's buttons, `resized()` when there is more or less room. */
  constructor(stage, use, resized) {
    this.#stage = stage;
    this.#use = use;
    new ResizeObserver(() => {
      this.#layOut();
      resized();
    }).observe(stage);
  }

  get all() {
    return [...this.#tiles.values()];
  }

  /** `models`: in order, `{key, name, self, screen,
   *  videoTrack, audioOn, videoOn, connection, held, talking, pinned, mine, large}`. */
  show(models) {
    const keys = new Set(models.map((model) => model.key));
    for (const [key, tile] of this.#tiles) {
      if (keys.has(key)) continue;
      tile.remove();
      this.#tiles.delete(key);
    }
    for (const model of models) {
      let tile = this.#tiles.get(model.key);
      if (!tile) {
        tile = new Tile(model, this.#use);
        this.#tiles.set(model.key, tile);
        this.#stage.append(tile.element);
      }
      tile.show(model);
    }
    models.forEach(({ key }, place) => { this.#tiles.get(key).element.style.order = place; });
    this.#sort(models.map(({ key }) => this.#tiles.get(key).element));
    this.#layOut();
  }

  /** Has the focus follow the order that is seen. An element that is removed and inserted again
   *  stops playing, so only browsers with `moveBefore` do this. */
  #sort(elements) {
    if (!this.#stage.moveBefore) return;
    elements.forEach((element, place) => {
      const there = this.#stage.children[place];
      if (there !== element) this.#stage.moveBefore(element, there);
    });
  }

  /** Plays media that the browser had blocked until a click. */
  play() {
    for (const tile of this.all) tile.play();
  }

  #layOut() {
    const { clientWidth, clientHeight } = this.#stage;
    const large = this.all.find((tile) => tile.model.large);
    for (const tile of this.all) tile.element.classList.toggle("is-large", tile === large);
    this.#stage.classList.toggle("has-large", large !== undefined);
    this.#stage.classList.toggle("is-alone", this.all.length === 1);
    this.#stage.style.setProperty("--rows", String(Math.max(this.all.length - 1, 1)));
    this.#stage.style.setProperty("--stage-height", `${clientHeight}px`);
    if (large) return; // the style sheet does it: a large one, and a strip
    const count = Math.max(this.all.length, 1);
    let best = { width: 0, columns: 1 };
    for (let columns = 1; columns <= count; columns++) {
      const rows = Math.ceil(count / columns);
      const width = Math.min(
        (clientWidth - GAP * (columns - 1)) / columns,
        ((clientHeight - GAP * (rows - 1)) / rows) * ASPECT,
      );
      if (width > best.width) best = { width, columns };
    }
    this.#stage.style.setProperty("--tile-width", `${Math.floor(best.width)}px`);
  }
}

class Tile {
  reading = null; // what sfud says of the picture, as why.js has it

  constructor(model, use) {
    const template = document.getElementById("tile").content.cloneNode(true);
    this.element = template.querySelector(".tile");
    this.video = template.querySelector("video");
    this.stats = template.querySelector(".tile-stats");
    this.model = model;
    this.element.dataset.key = model.key;
    this.video.addEventListener("resize", () => this.#reveal());
    this.video.addEventListener("playing", () => this.#reveal());
    this.video.addEventListener("dblclick", () => use("full", this));
    for (const button of template.querySelectorAll("[data-tool]")) {
      button.addEventListener("click", () => use(button.dataset.tool, this));
    }
  }

  get label() {
    const { name, self, screen } = this.model;
    return screen ? `${self ? "Your" : `${name}’s`} screen` : self ? `${name} (you)` : name;
  }

  show(model) {
    this.model = model;
    const { name, self, screen, audioOn, videoOn, connection, held, talking, pinned, mine } = model;
    const { label } = this;
    const find = (selector) => this.element.querySelector(selector);
    find(".tile-name").textContent = label;
    find(".tile-initials").textContent = initials(name);
    find(".tile-avatar").style.setProperty("--hue", hue(name));
    find(".tile-muted").toggleAttribute("hidden", screen || audioOn);
    find(".tile-held").textContent = held ?? "";
    find(".tile-held").hidden = !held;
    const away = connection === "reconnecting" || connection === "disconnected";
    find(".tile-away").hidden = !away;
    this.element.setAttribute(
      "aria-label",
      [
        label, talking && "speaking", !screen && !audioOn && "muted", !videoOn && "no video", held,
        pinned && "pinned", mine && "large for you", away && "reconnecting",
      ].filter(Boolean).join(", "),
    );
    find(".tile-pinned").toggleAttribute("hidden", !pinned);
    this.element.classList.toggle("is-speaking", Boolean(talking));
    this.element.classList.toggle("is-self", self && !screen);
    this.element.classList.toggle("is-screen", screen);
    const nameTool = (tool, text) => {
      const button = find(`[data-tool=${tool}]`);
      button.setAttribute("aria-label", `${text}: ${label}`);
      button.title = text;
    };
    nameTool("pin", mine ? "Not large any more" : "Show large");
    find("[data-tool=pin]").setAttribute("aria-pressed", String(Boolean(mine)));
    nameTool("float", "Picture in picture");
    nameTool("full", "Full screen");
    this.#attach(videoOn ? model.videoTrack : null);
    this.#reveal();
  }

  /** Shows bars for the picture; with `null` none. */
  signal(reading) {
    if (reading === null && this.reading === null) return;
    this.reading = reading;
    const button = this.element.querySelector(".tile-signal");
    button.hidden = reading === null;
    if (!reading) return;
    button.dataset.bars = reading.bars;
    button.setAttribute("aria-label", `${reading.label}: ${this.label}. Why?`);
    button.title = `${reading.label}. ${reading.text}`;
  }

  /** Shows these lines over the picture; without lines the overlay is removed. */
  overlay(lines) {
    this.stats.hidden = lines.length === 0;
    this.stats.textContent = lines.join("\n");
  }

  play() {
    if (!this.video.srcObject) return;
    this.video.play().catch((error) => {
      if (error.name === "NotAllowedError") document.dispatchEvent(new Event("play-blocked"));
    });
  }

  remove() {
    this.video.srcObject = null;
    this.element.remove();
  }

  #attach(track) {
    const stream = this.video.srcObject;
    const now = stream?.getTracks()[0] ?? null;
    if (now === track) return;
    if (now && track) return this.#replace(stream, now, track);
    this.video.srcObject = track && new MediaStream([track]);
    this.play();
  }

  /** In the same stream, the last picture of one track stays until the first one of the next. */
  #replace(stream, now, track) {
    stream.addTrack(track);
    stream.removeTrack(now);
    this.play();
  }

  /** The picture replaces the initials once there is one. */
  #reveal() {
    const shown = this.video.srcObject !== null && this.video.videoWidth > 0;
    this.element.classList.toggle("has-video", shown);
    this.element.querySelector("[data-tool=float]").hidden = !shown || !canFloat;
  }
}

export function initials(name) {
  const words = name.trim().split(/\s+/);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return letters.map((word) => [...word][0] ?? "").join("").toUpperCase();
}

export function hue(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 360;
  return String(hash);
}
