// The WebSocket to the signalling server: requests with replies, and unsolicited messages.

const REPLY_SECONDS = 15;

/** A request that was refused; `reason` is a stable word, `message` is for people. */
export class Refused extends Error {
  constructor({ reason, message, code }) {
    super(message);
    this.reason = reason;
    this.code = code;
  }
}

/**
 * Keeps a WebSocket open, and opens it again when it breaks.
 *
 * Dispatches `open`, `close` and, for the server's unsolicited messages, `message` with `detail`.
 */
export class Signalling extends EventTarget {
  #socket = null;
  #waiting = new Map();
  #nextID = 1;
  #pause = 250;
  #closed = false;

  constructor(url = new URL("ws", location.href.replace(/^http/, "ws"))) {
    super();
    this.url = url;
    this.#open();
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Resolves when the WebSocket is open. */
  opened() {
    if (this.isOpen) return Promise.resolve();
    return new Promise((resolve) => this.addEventListener("open", resolve, { once: true }));
  }

  /** Sends a request; resolves to its result, or rejects with `Refused`. */
  request(type, fields = {}) {
    if (!this.isOpen) {
      return Promise.reject(
        new Refused({ reason: "not-connected", message: "the signalling server cannot be reached" }),
      );
    }
    const id = this.#nextID++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Refused({ reason: "timeout", message: `no answer to ${type}` }));
      }, REPLY_SECONDS * 1000);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ type, id, ...fields }));
    });
  }

  close() {
    this.#closed = true;
    this.#socket?.close(1000);
  }

  #open() {
    const socket = new WebSocket(this.url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#pause = 250;
      this.dispatchEvent(new Event("open"));
    };
    socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    socket.onclose = () => {
      for (const { reject, timer } of this.#waiting.values()) {
        clearTimeout(timer);
        reject(new Refused({ reason: "not-connected", message: "the connection was lost" }));
      }
      this.#waiting.clear();
      this.dispatchEvent(new Event("close"));
      if (this.#closed) return;
      setTimeout(() => this.#open(), this.#pause);
      this.#pause = Math.min(this.#pause * 2, 4000);
    };
  }

  #take(message) {
    if (message.type !== "reply") {
      this.dispatchEvent(new CustomEvent("message", { detail: message }));
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    clearTimeout(waiting.timer);
    if (message.error) waiting.reject(new Refused(message.error));
    else waiting.resolve(message.result);
  }
}
