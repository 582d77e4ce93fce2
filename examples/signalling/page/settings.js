// The dialog of devices: which microphone, camera and speaker, and how loud the microphone is.

import { listDevices } from "./client/index.js";
import { Meter } from "./meter.js";
import { keep, kept } from "./storage.js";

const byID = (id) => document.getElementById(id);
const KINDS = { audio: "microphone", video: "camera", speaker: "speaker" };
/** Whether pages may choose the speaker in this browser. */
const HAS_SPEAKERS = "setSinkId" in HTMLMediaElement.prototype;
const SOUND_SECONDS = 0.7;

/** `devices`: a `Devices`; `speak(id)` is called with the chosen speaker. */
export class Settings {
  #dialog = byID("settings");
  #meter = new Meter(byID("settings-level"));
  #devices;

  constructor(devices, speak) {
    this.#devices = devices;
    speak(kept("device:speaker"));
    byID("pick-speaker").closest(".picker").hidden = !HAS_SPEAKERS;
    byID("single-keys").checked = Settings.hasKeys;
    byID("single-keys").addEventListener("change", ({ target }) => {
      keep("keys", target.checked ? "" : "off");
    });
    for (const kind of ["audio", "video"]) {
      byID(`pick-${kind}`).addEventListener("change", ({ target }) => {
        devices.choose(kind, target.value);
      });
    }
    byID("pick-speaker").addEventListener("change", ({ target }) => {
      keep("device:speaker", target.value);
      speak(target.value);
    });
    byID("try-speaker").addEventListener("click", () => this.#try());
    devices.addEventListener("change", () => this.show());
    devices.addEventListener("problem", ({ detail }) => {
      byID("settings-note").textContent = detail;
    });
    navigator.mediaDevices?.addEventListener("devicechange", () => this.show());
    this.#dialog.addEventListener("close", () => {
      if (!this.#dialog.open) this.#meter.show(null);
    });
  }

  /** Whether letters without a modifier are shortcuts. */
  static get hasKeys() {
    return kept("keys") !== "off";
  }

  open() {
    byID("settings-note").textContent = "";
    this.#dialog.showModal();
    this.show();
  }

  /** Updates the lists and the meter, if the dialog is open. */
  async show() {
    if (!this.#dialog.open) return;
    this.#meter.show(this.#devices.audio);
    const found = await listDevices();
    for (const [kind, name] of Object.entries(KINDS)) {
      const current = kind === "speaker" ? kept("device:speaker") : this.#devices.idOf(kind);
      const options = found[name].map(({ id, label }, index) =>
        new Option(label || `${name} ${index + 1}`, id, false, id === current));
      const none = `No ${name} found`;
      byID(`pick-${kind}`).replaceChildren(...(options.length ? options : [new Option(none, "")]));
      byID(`pick-${kind}`).disabled = options.length === 0;
    }
  }

  /** Two soft notes on the chosen speaker. */
  async #try() {
    const context = new AudioContext();
    const out = context.createMediaStreamDestination();
    [523, 784].forEach((frequency, index) => {
      const start = context.currentTime + index * 0.18;
      const note = new OscillatorNode(context, { frequency });
      const gain = new GainNode(context, { gain: 0 });
      gain.gain.setValueAtTime(0.25, start);
      gain.gain.exponentialRampToValueAtTime(0.001, start + 0.45);
      note.connect(gain).connect(out);
      note.start(start);
      note.stop(start + 0.5);
    });
    const player = new Audio();
    player.srcObject = out.stream;
    if (kept("device:speaker")) await player.setSinkId?.(kept("device:speaker")).catch(() => {});
    await player.play().catch(() => {});
    setTimeout(() => context.close(), SOUND_SECONDS * 1000);
  }
}
