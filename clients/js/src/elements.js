// The size in which a stream is shown, by the elements that show it.

/** A picture somewhat larger than its element is sharper than one that has to be scaled up. */
const MARGIN = 1.5;
const STEP = 160; // pixels: a size that differs by less is not worth a request
const PAUSE_MILLISECONDS = 200; // a window that is being resized changes often
const UNSEEN = { width: 1, height: 1 }; // the lowest layer
/** The size in which a picture in picture is received. */
const FLOATING = { width: 640, height: 360 };
/** A page that is in the background for longer than this does without pictures. */
const HIDDEN_MILLISECONDS = 5000;

/** Calls `prefer(stream, size)` whenever the largest visible element of a stream changes; `size` is
 *  `{width, height}`, or `null` while the page has been in the background for some time. */
export class Elements {
  #prefer;
  #shown = new Map(); // element → {stream, width, height, visible}
  #sizes = new ResizeObserver((entries) => this.#resized(entries));
  #views = new IntersectionObserver((entries) => this.#moved(entries));
  #timer = null;
  #hiddenTimer = null;
  #isAway = false;
  #listening = new AbortController();

  constructor(prefer) {
    this.#prefer = prefer;
    const { signal } = this.#listening;
    document.addEventListener("visibilitychange", () => this.#turned(), { signal });
    for (const type of ["enterpictureinpicture", "leavepictureinpicture"]) {
      document.addEventListener(type, () => this.#soon(), { signal, capture: true });
    }
    this.#turned();
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
    clearTimeout(this.#hiddenTimer);
    this.#listening.abort();
    this.#sizes.disconnect();
    this.#views.disconnect();
    this.#shown.clear();
  }

  #turned() {
    clearTimeout(this.#hiddenTimer);
    this.#isAway = false;
    if (document.hidden) {
      this.#hiddenTimer = setTimeout(() => {
        this.#isAway = true;
        this.#soon();
      }, HIDDEN_MILLISECONDS);
    }
    this.#soon();
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
    for (const [element, { stream, width, height, visible }] of this.#shown) {
      const isSeen = visible && document.visibilityState === "visible" && width * height > 0;
      const size = isFloating(element) ? FLOATING : isSeen
        ? { width: pixels(width), height: pixels(height) } : this.#isAway ? null : UNSEEN;
      const other = largest.get(stream);
      if (other === undefined || area(size) > area(other)) largest.set(stream, size);
    }
    for (const [stream, size] of largest) this.#prefer(stream, size);
  }
}

const area = (size) => (size ? size.width * size.height : 0);

/** Whether the element, or one in it, is the picture in picture. */
function isFloating(element) {
  const floating = document.pictureInPictureElement ?? null;
  return floating !== null && element.contains(floating);
}
