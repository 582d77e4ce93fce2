// The level of a microphone, as a bar.

const QUIETEST = -60; // dB of full scale: an empty bar
const SAY_MILLISECONDS = 500; // how often the value for screen readers changes

let context = null;

/** Shows the level of a track in an element of the role `meter`, as its property `--level`. */
export class Meter {
  #element;
  #track = null;
  #source = null;
  #analyser = null;
  #frame = 0;
  #said = 0;

  constructor(element) {
    this.#element = element;
  }

  /** Shows this track from now on; with `null` none, and takes no time. */
  show(track) {
    if (track === this.#track) return;
    this.#track = track;
    cancelAnimationFrame(this.#frame);
    this.#source?.disconnect();
    this.#source = null;
    this.#element.hidden = track === null;
    if (!track) return;
    context ??= new AudioContext();
    context.resume();
    this.#analyser ??= new AnalyserNode(context, { fftSize: 1024 });
    this.#source = new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream([track]) });
    this.#source.connect(this.#analyser);
    this.#draw();
  }

  #draw() {
    const level = this.#level();
    this.#element.style.setProperty("--level", level.toFixed(3));
    if (Date.now() - this.#said > SAY_MILLISECONDS) {
      this.#said = Date.now();
      this.#element.setAttribute("aria-valuenow", String(Math.round(100 * level)));
    }
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  /** From 0 to 1, by the loudness in decibels. */
  #level() {
    const wave = new Float32Array(this.#analyser.fftSize);
    this.#analyser.getFloatTimeDomainData(wave);
    const power = wave.reduce((sum, it) => sum + it * it, 0) / wave.length;
    const decibels = 10 * Math.log10(power + 1e-12);
    return Math.min(Math.max(1 - decibels / QUIETEST, 0), 1);
  }
}
