// Requests with replies, and unsolicited messages, over a transport that the application gives.

import { CallError } from "./errors.js";

const REPLY_SECONDS = 15;
const OPEN_SECONDS = 15;
/** Of a WebSocket that is replaced; by 1000 a server would take the participant out of the room. */
const SILENT = 4000;
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [250, 4000]; // milliseconds before another attempt

/**
 * Keeps a transport open, and opens another when it breaks.
 *
 * `transport` is a WebSocket or anything with `send(text)`, `close()`, and the handlers `onopen`,
 * `onmessage({data})` and `onclose`; one without a `readyState` is open from the start. A function
 * that returns one, or a promise of one, is called again after each break, and when nothing at all
 * arrives after a request; without a function a break is final.
 *
 * Dispatches `open`, `close` (`detail.final`: no further attempt is made) and, for the server's
 * unsolicited messages, `message` with `detail`.
 */
export class Signalling extends EventTarget {
  #make;
  #transport = null;
  #open = false;
  #waiting = new Map();
  #arrived = 0; // messages so far
  #nextID = 1;
  #pause = SHORTEST_PAUSE;
  #timer = null;
  #closed = false;

  constructor(transport) {
    super();
    this.#make = typeof transport === "function" ? transport : null;
    if (this.#make) this.#connect();
    else this.#use(transport);
  }

  get isOpen() {
    return this.#open;
  }

  /** Resolves when the transport is open. */
  opened() {
    if (this.#open) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const listening = new AbortController();
      const settle = (run) => {
        clearTimeout(timer);
        listening.abort();
        run();
      };
      const fail = () => settle(() => reject(unreachable()));
      const timer = setTimeout(fail, OPEN_SECONDS * 1000);
      const { signal } = listening;
      this.addEventListener("open", () => settle(resolve), { signal });
      this.addEventListener("close", ({ detail }) => detail.final && fail(), { signal });
      if (this.#closed) fail();
    });
  }

  /** Sends a request; resolves to its result, or rejects with `CallError`. */
  request(type, fields = {}) {
    if (!this.#open) return Promise.reject(unreachable());
    const id = this.#nextID++;
    return new Promise((resolve, reject) => {
      const arrived = this.#arrived;
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new CallError({ reason: "timeout", message: `no answer to ${type}` }));
        // While others are answered the server is there, and may be busy with an earlier request.
        if (arrived === this.#arrived) this.#replace();
      }, REPLY_SECONDS * 1000);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#transport.send(JSON.stringify({ type, id, ...fields }));
    });
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    const transport = this.#transport;
    this.#lose();
    transport?.close(1000);
  }

  async #connect() {
    try {
      const transport = await this.#make();
      if (this.#closed) transport.close(1000);
      else this.#use(transport);
    } catch {
      this.#lose();
    }
  }

  #use(transport) {
    this.#transport = transport;
    const isOurs = () => this.#transport === transport;
    transport.onopen = () => isOurs() && this.#opened();
    transport.onmessage = ({ data }) => isOurs() && this.#take(JSON.parse(data));
    transport.onclose = () => isOurs() && this.#lose();
    // WebSocket.OPEN; in a microtask, so that listeners are in place.
    if ((transport.readyState ?? 1) === 1) queueMicrotask(() => isOurs() && this.#opened());
  }

  #opened() {
    if (this.#open) return;
    this.#open = true;
    this.#pause = SHORTEST_PAUSE;
    this.dispatchEvent(new Event("open"));
  }

  #lose() {
    this.#transport = null;
    this.#open = false;
    if (!this.#make) this.#closed = true;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(new CallError({ reason: "not-connected", message: "the connection was lost" }));
    }
    this.#waiting.clear();
    this.dispatchEvent(new CustomEvent("close", { detail: { final: this.#closed } }));
    if (this.#closed) return;
    this.#timer = setTimeout(() => this.#connect(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  /** Gives up a transport that is dead but has not closed. */
  #replace() {
    if (!this.#make) return;
    const transport = this.#transport;
    this.#lose();
    transport.close(SILENT);
  }

  #take(message) {
    this.#arrived += 1;
    if (message.type !== "reply") {
      this.dispatchEvent(new CustomEvent("message", { detail: message }));
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    clearTimeout(waiting.timer);
    if (message.error) waiting.reject(new CallError(message.error));
    else waiting.resolve(message.result);
  }
}

function unreachable() {
  const message = "the signalling server cannot be reached";
  return new CallError({ reason: "not-connected", message });
}
