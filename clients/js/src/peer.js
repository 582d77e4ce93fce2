// One peer connection to sfud: the sent tracks, and the slots that receive streams.
//
// The client always offers. A receive m-line is a slot: its stream changes without any
// negotiation, so a new offer is needed only when there are too few slots.

import { Encryption } from "./encryption.js";
import { CallError, PASSING } from "./errors.js";

const MOST_SLOTS = 45; // pairs; an offer has at most 100 m-lines
const MOST_AT_FIRST = 16; // pairs in the first offer: how long their lines are is known only after it
/** Bytes of an offer, less than the 262,144 that sfud takes: a screen may be added. */
const MOST_SDP = 240_000;
const LOST_SECONDS = 2; // a path may come back by itself within this time
const RESTART_SECONDS = 8; // an ICE restart has this long to work
const MOST_RESTARTS = 3; // then `lost`: a new connection is needed

/** Dispatches `lost` when ICE restarts did not help, and `state` when the connection's changes. */
export class Peer extends EventTarget {
  pc;
  /** Pairs of m-lines to receive on: `{audio, video, stream, follows}`, the first two transceivers. */
  slots = [];
  /** Negotiated result for each sent track: "microphone", … → `{stream, refused}`. */
  published = new Map();
  /** Resolves when it is closed; what a browser was asked for may stay without an answer then. */
  closed;

  #most;
  #end;
  #offer;
  #codec;
  #encryption;
  #senders = new Map(); // "microphone" · "camera" · "screen" · "screen-audio" → transceiver
  #offered = new Map(); // of the last offer: mid → label
  #running = Promise.resolve();
  #next = null;
  #restarts = 0;
  #timer = null;

  /** `offer(sdp, sources)` resolves to `{sdp, mids}`; `name` is sfud's of the transport; `codec`, if
   *  given, is preferred for video; `rtc` is an `RTCConfiguration`; `encryption` covers all
   *  transceivers; `most`: that of another peer of this browser. */
  constructor(offer, {
    name = "main", most = MOST_AT_FIRST, codec = null, rtc = {}, encryption = null,
  } = {}) {
    super();
    this.name = name;
    this.#most = most;
    this.closed = new Promise((resolve) => { this.#end = resolve; });
    this.#offer = offer;
    this.#codec = codec?.toLowerCase() ?? null;
    this.#encryption = encryption;
    const needed = encryption ? Encryption.configuration : {};
    this.pc = new RTCPeerConnection({ ...rtc, ...needed, bundlePolicy: "max-bundle" });
    this.pc.onconnectionstatechange = () => this.#watch();
  }

  get isClosed() {
    return this.pc.signalingState === "closed";
  }

  /** Resolves once media can flow; rejects if it cannot within so many seconds. */
  connected(seconds) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (this.pc.connectionState !== "connected") return;
        clearTimeout(timer);
        this.removeEventListener("state", look);
        resolve();
      };
      const timer = setTimeout(() => {
        this.removeEventListener("state", look);
        reject(new CallError({ reason: "not-connected", message: "the new connection does not work" }));
      }, seconds * 1000);
      this.addEventListener("state", look);
      look();
    });
  }

  /** Whether a path that breaks is left as it is. */
  get isResting() {
    return this.pc.onconnectionstatechange === null;
  }

  /** Leaves a path that breaks as it is: another peer is to take the place of this one. */
  rest() {
    clearTimeout(this.#timer);
    this.pc.onconnectionstatechange = null;
  }

  close() {
    this.rest();
    this.pc.close();
    this.#end();
  }

  /**
   * Makes the m-lines of another peer in the same order, which gives them the same mids: for the
   * same tracks in the same layers, and for the same slots. Takes effect with `negotiate()`.
   */
  copy(other) {
    const labels = new Map([...other.#senders].map(([label, it]) => [it, label]));
    const copies = new Map(other.pc.getTransceivers().map((it) => {
      const label = labels.get(it);
      return [it, label ? this.#copySender(label, it) : this.#addReceiver(it.receiver.track.kind)];
    }));
    this.slots = other.slots.filter((it) => copies.has(it.audio) && copies.has(it.video))
      .map((it) => ({ ...it, audio: copies.get(it.audio), video: copies.get(it.video) }));
  }

  /** Assigns the slots as those of the peer that it is a copy of; returns whether all are alike. */
  takeSlots(other) {
    const mids = ({ pc }) => String(pc.getTransceivers().map((it) => it.mid));
    if (this.slots.length !== other.slots.length || mids(this) !== mids(other)) return false;
    this.slots.forEach((slot, index) => {
      const { audio, video, ...state } = other.slots[index];
      Object.assign(slot, state);
    });
    return true;
  }

  /** Sends a track, or stops sending (`null`); takes effect with `negotiate()`. */
  async send(label, track, encodings) {
    const transceiver = this.#senders.get(label);
    if (transceiver) {
      transceiver.direction = track ? "sendonly" : "inactive";
      await transceiver.sender.replaceTrack(track);
    } else if (track) {
      this.#addSender(label, track, { direction: "sendonly", sendEncodings: encodings ?? [{}] });
    }
  }

  #copySender(label, { sender, receiver, direction }) {
    const { encodings } = sender.getParameters();
    const media = sender.track ?? receiver.track.kind;
    return this.#addSender(label, media, { direction, sendEncodings: encodings });
  }

  #addSender(label, media, options) {
    const made = this.pc.addTransceiver(media, options);
    this.#encryption?.cover(made);
    if (made.receiver.track.kind === "video") this.#prefer(made);
    this.#senders.set(label, made);
    return made;
  }

  #addReceiver(kind) {
    const made = this.pc.addTransceiver(kind, { direction: "recvonly" });
    this.#encryption?.cover(made);
    return made;
  }

  /** Switches sent encodings off or on, by sfud's `layers`. */
  async setLayers(label, layers) {
    const sender = this.#senders.get(label)?.sender;
    const parameters = sender?.getParameters();
    if (!parameters?.encodings?.length) return;
    parameters.encodings.forEach((encoding, index) => {
      const layer = layers.find((it) => it.rid === encoding.rid) ?? layers[index];
      encoding.active = layer?.wanted ?? true;
    });
    await sender.setParameters(parameters);
  }

  /** Whether `label` is sent, negotiated and taken. */
  isSending(label) {
    const { stream } = this.published.get(label) ?? {};
    return Boolean(stream) && this.#senders.get(label)?.direction === "sendonly";
  }

  /** Sends another track in the place of that of `label`, without negotiation. */
  async replace(label, track) {
    await this.#senders.get(label).sender.replaceTrack(track);
  }

  /** The label of the track that is sent on this m-line, if any. */
  labelOf(mid) {
    return [...this.#senders].find(([, it]) => it.mid === mid)?.[0] ?? null;
  }

  /** How many slots there may be: by the length of the pairs in the present offer, if there is one. */
  get most() {
    const sdp = this.pc.localDescription?.sdp;
    const mids = this.slots.flatMap((it) => [it.audio.mid, it.video.mid]).filter((it) => it !== null);
    if (!sdp || mids.length === 0) return this.#most;
    const sections = sdp.split(/^(?=m=)/m);
    const length = sections.filter((it) => mids.includes(/^a=mid:(.*?)\r?$/m.exec(it)?.[1]))
      .reduce((sum, it) => sum + it.length, 0);
    const pair = length / (mids.length / 2);
    return Math.min(MOST_SLOTS, Math.floor((MOST_SDP - (sdp.length - length)) / pair));
  }

  /** Adds slots up to the limit; takes effect with `negotiate()`. */
  addSlots(count) {
    const more = Math.min(count, this.most - this.slots.length);
    for (let i = 0; i < more; i++) {
      const [audio, video] = ["audio", "video"].map((kind) => this.#addReceiver(kind));
      this.slots.push({ audio, video, stream: null, follows: false });
    }
    return more > 0;
  }

  /** Makes an offer of the present state. One at a time; a waiting offer is shared. */
  negotiate() {
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return (this.#running = Promise.race([this.#negotiate(), this.closed]));
      });
    return this.#next;
  }

  restart() {
    this.pc.restartIce();
    return this.negotiate();
  }

  async #negotiate() {
    // sfud may have taken an offer whose answer was lost; a repeated one changes nothing.
    if (this.pc.signalingState === "have-local-offer") await this.#exchange();
    if (this.isClosed) return;
    await this.pc.setLocalDescription(await this.pc.createOffer());
    this.#offered.clear();
    for (const [label, transceiver] of this.#senders) {
      if (transceiver.direction === "sendonly") this.#offered.set(transceiver.mid, label);
    }
    await this.#exchange();
  }

  /** Sends the present offer, and takes its answer. */
  async #exchange() {
    const labels = this.#offered;
    const sources = Object.fromEntries([...labels].map(([mid, it]) => [mid, it.split("-")[0]]));
    let answer;
    try {
      answer = await this.#offer(this.pc.localDescription.sdp, sources);
      if (this.isClosed) return;
      await this.pc.setRemoteDescription({ type: "answer", sdp: answer.sdp });
    } catch (error) {
      if (this.isClosed) return;
      // After a rollback new m-lines get other mids, which sfud refuses once it knows the former.
      if (this.pc.signalingState === "have-local-offer" && !PASSING.has(error.reason)) {
        await this.pc.setLocalDescription({ type: "rollback" });
      }
      throw error;
    }
    this.published.clear();
    for (const { mid, stream, refused } of answer.mids) {
      if (labels.has(mid)) this.published.set(labels.get(mid), { stream, refused });
    }
  }

  #prefer(transceiver) {
    if (!this.#codec) return;
    const { codecs } = RTCRtpSender.getCapabilities("video");
    const wanted = codecs.filter((it) => it.mimeType.toLowerCase() === `video/${this.#codec}`);
    const rest = codecs.filter((it) => !wanted.includes(it));
    transceiver.setCodecPreferences([...wanted, ...rest]);
  }

  #watch() {
    clearTimeout(this.#timer);
    switch (this.pc.connectionState) {
      case "connected":
        this.#restarts = 0;
        break;
      case "disconnected":
        this.#timer = setTimeout(() => this.#recover(), LOST_SECONDS * 1000);
        break;
      case "failed":
        this.#recover();
        break;
    }
    this.dispatchEvent(new Event("state"));
  }

  async #recover() {
    if (this.isClosed || this.pc.connectionState === "connected") return;
    if (this.#restarts++ === MOST_RESTARTS) {
      this.dispatchEvent(new Event("lost"));
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#recover(), RESTART_SECONDS * 1000);
    await this.restart().catch(() => {}); // the timer tries again
  }
}
