// One participant's call: who is in the room, and a peer connection that follows it.

import { cameraEncodings } from "./media.js";
import { Peer } from "./peer.js";

const SPARE_SLOTS = 2;
const RETRY_SECONDS = 2;
const SCREEN_ENCODINGS = [{ maxBitrate: 2_500_000 }];

/** Reasons for a refusal that goes away by itself. */
const PASSING = new Set(["not-connected", "sfud-not-running", "timeout"]);

/**
 * Dispatches `change` whenever what is to be shown has changed, and `problem` with
 * `{message, waiting}`, or `null` once it is over, whenever people should know something.
 */
export class Call extends EventTarget {
  state = "idle"; // idle · joining · joined · reconnecting · left
  me = null;
  peer = null;
  participants = new Map(); // id → {participant, name, connection, …}
  streams = new Map(); // id → {stream, participant, source, audio?, video?}
  local = { audio: null, video: null };
  screen = null;

  #signalling;
  #codec;
  #key = null;
  #rejoining = false;
  #following = null;
  #followAgain = false;

  constructor(signalling, { room, name, codec = null }) {
    super();
    this.room = room;
    this.name = name;
    this.#signalling = signalling;
    this.#codec = codec;
    signalling.addEventListener("message", ({ detail }) => this.#take(detail));
    signalling.addEventListener("open", () => this.#resume());
    signalling.addEventListener("close", () => this.#interrupted());
  }

  /** Joins with these tracks; either may be `null`. Throws `Refused`. */
  async join(local) {
    this.local = local;
    this.#set("joining");
    try {
      await this.#enter();
    } catch (error) {
      this.#set("left");
      this.#disconnect();
      this.#signalling.request("leave").catch(() => {});
      throw error;
    }
  }

  async leave() {
    if (this.state === "left") return;
    this.#set("left");
    this.#disconnect();
    await this.#signalling.request("leave").catch(() => {});
  }

  /** Switches the microphone or the camera off or on, here and at sfud. */
  async setEnabled(kind, enabled) {
    this.local[kind].enabled = enabled;
    this.#changed();
    await this.#announce(kind);
  }

  /** Sends a device that was not there at the start. */
  async addDevice(kind, track) {
    this.local[kind] = track;
    this.#changed();
    if (!this.peer) return;
    await this.#sendDevice(kind);
    await this.peer.negotiate();
  }

  async share(screen) {
    this.screen = screen;
    screen.video.addEventListener("ended", () => this.unshare(screen).catch(() => {}));
    this.#changed();
    try {
      await this.#sendScreen();
      await this.peer.negotiate();
      const refused = this.peer.published.get("screen")?.refused;
      if (refused) throw new Error(`sfud refused the screen share (${refused})`);
    } catch (error) {
      await this.unshare(screen);
      throw error;
    }
  }

  async unshare(screen = this.screen) {
    if (!screen || this.screen !== screen) return;
    this.screen = null;
    for (const track of [screen.video, screen.audio]) track?.stop();
    this.#changed();
    if (!this.peer) return;
    await this.#sendScreen();
    await this.peer.negotiate();
  }

  /** The slot on which a stream arrives, if it has one yet. */
  slot(stream) {
    return this.peer?.slots.find((slot) => slot.stream === stream);
  }

  // ---- Coming, and coming back

  async #enter() {
    const joined = await this.#signalling.request("join", { room: this.room, name: this.name });
    this.me = joined.participant;
    this.#key = joined.key;
    this.#picture(joined.room);
    await this.#connect();
    this.#set("joined");
    await this.#follow();
  }

  async #connect() {
    const offer = (sdp, sources) => this.#signalling.request("offer", { sdp, sources });
    const peer = new Peer(offer, this.#codec);
    this.peer = peer;
    peer.addEventListener("state", () => this.#changed());
    peer.addEventListener("lost", () => this.#rejoin("The connection to sfud is lost. Rejoining…"));
    for (const kind of ["audio", "video"]) if (this.local[kind]) await this.#sendDevice(kind);
    if (this.screen) await this.#sendScreen();
    peer.addSlots(this.#others().length + SPARE_SLOTS);
    await peer.negotiate();
    const refused = [...peer.published.values()].find((it) => it.refused)?.refused;
    if (refused) this.#problem(`sfud does not take your media (${refused}).`, false);
    for (const kind of ["audio", "video"]) {
      if (this.local[kind]?.enabled === false) await this.#announce(kind);
    }
  }

  #disconnect() {
    this.peer?.close();
    this.peer = null;
    this.participants = new Map();
    this.streams = new Map();
    this.#changed();
  }

  /** The WebSocket is back: the participant is still there, or has to come anew. */
  async #resume() {
    if (this.state !== "reconnecting" || !this.peer) return;
    try {
      const { room } = await this.#signalling.request("resume", { key: this.#key });
      this.#picture(room);
      this.#set("joined");
      this.#problem(null);
      await this.#follow();
    } catch (error) {
      if (!PASSING.has(error.reason)) await this.#rejoin();
    }
  }

  /** Makes everything anew, as another participant of the same name. */
  async #rejoin(message) {
    if (this.#rejoining) return;
    this.#rejoining = true;
    if (message) this.#problem(message, true);
    this.#disconnect();
    this.#set("reconnecting");
    try {
      await this.#enter();
      this.#problem(null);
    } catch (error) {
      this.#disconnect();
      if (!PASSING.has(error.reason)) this.#end(`Could not rejoin: ${error.message}`);
      else setTimeout(() => this.state === "reconnecting" && this.#rejoin(), RETRY_SECONDS * 1000);
    } finally {
      this.#rejoining = false;
    }
  }

  #interrupted() {
    if (this.state !== "joined" && this.state !== "reconnecting") return;
    this.#set("reconnecting");
    this.#problem("The connection to the signalling server is lost. Reconnecting…", true);
  }

  #end(message) {
    this.#set("left");
    this.#disconnect();
    this.#problem(message, false);
  }

  // ---- What the server says

  #take(message) {
    if (this.state === "idle" || this.state === "left") return;
    if (message.type === "status" && this.state === "joining") return; // `join` itself will tell
    switch (message.type) {
      case "event":
        this.#event(message.event, message.data);
        break;
      case "room":
        this.#picture(message.room);
        this.#follow();
        break;
      case "gone":
        this.#rejoin("sfud was restarted. Rejoining…");
        break;
      case "status":
        if (!message.sfud) {
          this.#problem("sfud is not running, or cannot be reached. Waiting for it…", true);
        } else if (this.state === "joined") {
          this.#problem(null);
        } else {
          this.#resume();
        }
        break;
    }
  }

  #picture(room) {
    this.participants = new Map(room.participants.map((it) => [it.participant, it]));
    this.streams = new Map(room.streams.map((it) => [it.stream, it]));
    this.#changed();
  }

  #event(event, data) {
    switch (event) {
      case "participant.joined":
        this.participants.set(data.participant.participant, data.participant);
        break;
      case "participant.left":
        if (data.participant === this.me) return this.#end("You were taken out of the room.");
        this.participants.delete(data.participant);
        break;
      case "participant.connection":
        if (data.participant === this.me && data.connection === "disconnected") {
          return void this.#rejoin("The connection to sfud was lost. Rejoining…");
        }
        this.participants.set(data.participant, {
          ...this.participants.get(data.participant),
          connection: data.connection,
        });
        break;
      case "stream.created":
      case "stream.changed":
        this.streams.set(data.stream.stream, data.stream);
        break;
      case "stream.destroyed":
        this.streams.delete(data.stream);
        break;
      case "room.closed":
        return this.#end("The room was closed.");
    }
    this.#changed();
    this.#follow();
  }

  // ---- Slots follow streams

  #others() {
    return [...this.streams.values()].filter((it) => it.participant !== this.me);
  }

  /** Brings the slots to what is in the room. One at a time; asked meanwhile, it goes round again. */
  async #follow() {
    this.#followAgain = true;
    this.#following ??= (async () => {
      while (this.#followAgain) {
        this.#followAgain = false;
        try {
          await this.#followOnce(this.peer);
        } catch (error) {
          if (!PASSING.has(error.reason)) this.#problem(`Streams: ${error.message}`, false);
        }
      }
      this.#following = null;
    })();
    await this.#following;
  }

  async #followOnce(peer) {
    if (!peer || this.state !== "joined") return;
    for (const slot of peer.slots) {
      if (slot.stream === null) continue;
      const stream = this.streams.get(slot.stream);
      if (!stream) {
        slot.stream = null;
      } else if ((stream.audio && !slot.hasAudio) || (stream.video && !slot.hasVideo)) {
        await this.#signalling.request("unsubscribe", { stream: slot.stream });
        slot.stream = null; // subscribed to anew below, now with both kinds
      }
    }
    const carried = new Set(peer.slots.map((slot) => slot.stream));
    const wanted = this.#others().filter((it) => !carried.has(it.stream));
    const missing = wanted.length - peer.slots.filter((slot) => slot.stream === null).length;
    if (missing > 0 && peer.addSlots(missing + SPARE_SLOTS)) await peer.negotiate();
    for (const stream of wanted) {
      const slot = peer.freeSlot();
      if (!slot) {
        this.#problem("There are more people here than this page can show.", false);
        break;
      }
      await this.#subscribe(slot, stream);
    }
    this.#changed();
  }

  async #subscribe(slot, { stream, audio, video }) {
    Object.assign(slot, { stream, hasAudio: Boolean(audio), hasVideo: Boolean(video) });
    const mids = {};
    if (audio) mids.audioMid = slot.audio.mid;
    if (video) mids.videoMid = slot.video.mid;
    try {
      await this.#signalling.request("subscribe", { stream, ...mids });
    } catch (error) {
      slot.stream = null;
      if (error.reason !== "no-such-stream") throw error; // else it went away meanwhile
    }
  }

  // ---- What is sent

  #sendDevice(kind) {
    const track = this.local[kind];
    return kind === "video"
      ? this.peer.send("camera", track, cameraEncodings(track))
      : this.peer.send("microphone", track);
  }

  async #sendScreen() {
    await this.peer.send("screen", this.screen?.video ?? null, SCREEN_ENCODINGS);
    await this.peer.send("screen-audio", this.screen?.audio ?? null);
  }

  async #announce(kind) {
    const label = kind === "video" ? "camera" : "microphone";
    const stream = this.peer?.published.get(label)?.stream;
    if (!stream) return;
    await this.#signalling.request("media", { stream, [kind]: this.local[kind].enabled });
  }

  #set(state) {
    this.state = state;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  #problem(message, waiting) {
    this.dispatchEvent(new CustomEvent("problem", { detail: message && { message, waiting } }));
  }
}
