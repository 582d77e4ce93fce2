// The size in which a stream is shown, by the elements that show it.

/** A picture somewhat larger than its element is sharper than one that has to be scaled up. */
const MARGIN = 1.5;
const STEP = 160; // pixels: a size that differs by less is not worth a request
const PAUSE_MILLISECONDS = 200; // a window that is being resized changes often
const UNSEEN = { width: 1, height: 1 }; // the lowest layer

/** Calls `prefer(stream, width, height)` whenever the largest visible element of a stream changes. */
export class Elements {
  #prefer;
  #shown = new Map(); // element → {stream, width, height, visible}
  #sizes = new ResizeObserver((entries) => this.#resized(entries));
  #views = new IntersectionObserver((entries) => this.#moved(entries));
  #timer = null;
  #onVisibility = () => this.#soon();

  constructor(prefer) {
    this.#prefer = prefer;
    document.addEventListener("visibilitychange", this.#onVisibility);
  }

  /** The element shows this stream from now on, whatever it has shown before. */
  add(element, stream) {
    const known = this.#shown.get(element);
    if (known?.stream === stream) return;
    if (known) known.stream = stream;
    else this.#observe(element, stream);
    this.#soon();
  }

  remove(element) {
    if (!this.#shown.delete(element)) return;
    this.#sizes.unobserve(element);
    this.#views.unobserve(element);
    this.#soon();
  }

  /** Applies all sizes anew, for streams that could not be asked for before. */
  refresh() {
    if (this.#shown.size > 0) this.#soon();
  }

  close() {
    clearTimeout(this.#timer);
    this.#sizes.disconnect();
    this.#views.disconnect();
    this.#shown.clear();
    document.removeEventListener("visibilitychange", this.#onVisibility);
  }

  #observe(element, stream) {
    const { clientWidth: width, clientHeight: height } = element;
    this.#shown.set(element, { stream, width, height, visible: true });
    this.#sizes.observe(element);
    this.#views.observe(element);
  }

  #resized(entries) {
    for (const { target } of entries) {
      const { clientWidth: width, clientHeight: height } = target;
      const shown = this.#shown.get(target);
      if (shown) Object.assign(shown, { width, height });
    }
    this.#soon();
  }

  #moved(entries) {
    for (const { target, isIntersecting } of entries) {
      const shown = this.#shown.get(target);
      if (shown) shown.visible = isIntersecting;
    }
    this.#soon();
  }

  #soon() {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#apply();
    }, PAUSE_MILLISECONDS);
  }

  #apply() {
    const largest = new Map();
    const pixels = (it) => Math.max(1, Math.ceil((it * devicePixelRatio * MARGIN) / STEP) * STEP);
    for (const [element, shown] of this.#shown) {
      if (!element.isConnected && shown.wasConnected) this.remove(element); // the page took it out
      shown.wasConnected = element.isConnected;
    }
    for (const { stream, width, height, visible } of this.#shown.values()) {
      const isSeen = visible && document.visibilityState === "visible" && width * height > 0;
      const size = isSeen ? { width: pixels(width), height: pixels(height) } : UNSEEN;
      const other = largest.get(stream);
      if (!other || size.width * size.height > other.width * other.height) largest.set(stream, size);
    }
    for (const [stream, { width, height }] of largest) this.#prefer(stream, width, height);
  }
}
