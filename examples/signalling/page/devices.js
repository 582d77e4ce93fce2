// Our camera and our microphone: their tracks, and which devices they are.

import { openDevices } from "./media.js";
import { keep, kept } from "./storage.js";

/** Dispatches `change` with `{kind, track}` (`null` if it has ended), and `problem` with a text. */
export class Devices extends EventTarget {
  audio = null;
  video = null;
  #size;

  /** `size`: the picture that is wished for. */
  constructor(size) {
    super();
    this.#size = size;
  }

  isOn(kind) {
    return this[kind]?.enabled === true && this[kind].readyState === "live";
  }

  /** The id of the device that is used, or was chosen last. */
  idOf(kind) {
    return this[kind]?.getSettings().deviceId ?? kept(`device:${kind}`);
  }

  /** Opens the devices of these kinds, those that were chosen last if they are there. */
  async take(kinds) {
    const ids = Object.fromEntries(kinds.map((kind) => [kind, kept(`device:${kind}`)]));
    const size = this.#size ? { size: this.#size } : {};
    const wish = { audio: kinds.includes("audio"), video: kinds.includes("video"), ids, ...size };
    const { problem, ...tracks } = await openDevices(wish);
    for (const kind of ["audio", "video"]) if (tracks[kind]) this.#use(kind, tracks[kind]);
    if (problem) this.#tell(problem);
  }

  /** Uses another device in the place of the present one. */
  async choose(kind, id) {
    keep(`device:${kind}`, id);
    await this.take([kind]);
  }

  #use(kind, track) {
    const former = this[kind];
    this[kind] = track;
    if (former?.readyState === "live") track.enabled = former.enabled; // muted stays muted
    track.addEventListener("ended", () => {
      if (this[kind] !== track) return;
      this.#tell(`The ${kind === "audio" ? "microphone" : "camera"} is gone.`);
      this.dispatchEvent(new CustomEvent("change", { detail: { kind, track: null } }));
    });
    this.dispatchEvent(new CustomEvent("change", { detail: { kind, track } }));
    former?.stop();
  }

  #tell(message) {
    this.dispatchEvent(new CustomEvent("problem", { detail: message }));
  }
}
