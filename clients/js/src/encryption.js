// End-to-end encryption of what is sent and received, by the frames of insertable streams.

import { CallError } from "./errors.js";

const ASK_AGAIN_MILLISECONDS = 1000;

/** Encrypts the transceivers of one call; the work is done by a worker. */
export class Encryption {
  #worker;
  #key;
  #used = new Set(); // senders and receivers with a transform
  #counting = [];
  #timers = new Set();

  /** `key(id)` returns, or promises, a `CryptoKey`, 16 or 32 bytes, or `null`; `id` is 0 to 255. */
  constructor({ key, id = 0 }) {
    const isModern = "RTCRtpScriptTransform" in globalThis;
    if (!isModern && !("createEncodedStreams" in RTCRtpSender.prototype)) {
      const message = "this browser has no access to encoded frames";
      throw new CallError({ reason: "unsupported", message });
    }
    this.#key = key;
    this.#worker = new Worker(new URL("cipher.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => {
      if (data.wants !== undefined) this.#provide(data.wants);
      if (data.counts) this.#counting.shift()?.(data.counts);
    };
    this.use(id);
  }

  /** Members of the `RTCConfiguration` that it needs. */
  static get configuration() {
    return "RTCRtpScriptTransform" in globalThis ? {} : { encodedInsertableStreams: true };
  }

  /** Seals with the key of this id from now on. */
  use(id) {
    if (!Number.isInteger(id) || id < 0 || id > 255) {
      throw new CallError({ reason: "bad-options", message: "a key's id is 0 to 255" });
    }
    this.#worker.postMessage({ use: id });
  }

  /** Covers both directions of a transceiver; to be called as soon as it is made. */
  cover({ sender, receiver }) {
    for (const [end, direction] of [[sender, "send"], [receiver, "receive"]]) {
      if (this.#used.has(end)) continue;
      this.#used.add(end);
      if ("RTCRtpScriptTransform" in globalThis) {
        end.transform = new RTCRtpScriptTransform(this.#worker, { direction });
      } else {
        const { readable, writable } = end.createEncodedStreams();
        this.#worker.postMessage({ direction, readable, writable }, [readable, writable]);
      }
    }
  }

  /** Counts of frames: `{sealed, opened, refused, withoutKey}`. */
  counts() {
    return new Promise((resolve) => {
      this.#counting.push(resolve);
      this.#worker.postMessage({ count: true });
    });
  }

  close() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#worker.terminate();
    this.#used.clear();
    for (const resolve of this.#counting.splice(0)) resolve(null);
  }

  async #provide(id) {
    let key = null;
    try {
      key = await this.#key(id);
      if (key && !(key instanceof CryptoKey)) {
        key = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
      }
    } catch (error) {
      console.error("sfud: no key", error);
      key = null;
    }
    if (key) return void this.#worker.postMessage({ id, key });
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#worker.postMessage({ id, key: null });
    }, ASK_AGAIN_MILLISECONDS);
    this.#timers.add(timer);
  }
}
