// One participant's call: the room's state, and a peer connection that follows it.

import { openDevice, openScreen } from "./devices.js";
import { Elements } from "./elements.js";
import { cameraEncodings, SCREEN_ENCODINGS } from "./encodings.js";
import { Encryption } from "./encryption.js";
import { CallError, PASSING } from "./errors.js";
import { Peer } from "./peer.js";
import { RoomState } from "./roomstate.js";
import { Signalling } from "./signalling.js";
import { Slots } from "./slots.js";
import { Sampler } from "./statistics.js";

const FIRST_SLOTS = 2; // in addition to those for present participants
const RETRY_SECONDS = 2;
const MOVE_SECONDS = 10; // a new connection has this long to work
const OVERLAP_MILLISECONDS = 1000; // both send, until the others show what the new one sends
const HANDOVER_MILLISECONDS = 3000; // sfud's word that the new one is in use may be missed

/** Messages to people, by the `reason` of `ended`. */
const ENDINGS = {
  denied: "A moderator did not let you in",
  dropped: "You were taken out of the room",
  disconnected: "Your connection was lost",
  left: "You have left the room",
  "room-closed": "The room was closed",
  shutdown: "The server was shut down",
};

/** Rejects with `CallError` only. */
const typed = (promise) => promise.catch((error) => { throw CallError.of(error); });

/** Awaits work for a peer; rejects if the peer is closed meanwhile. */
const unlessClosed = (peer, work) => Promise.race([work, peer.closed.then(() => {
  throw new CallError({ reason: "left", message: "the call has ended meanwhile" });
})]);

const KINDS = { microphone: "audio", camera: "video" };

/**
 * Dispatches `change` whenever the view has to be updated; `joined` (`detail.resumed`: without a
 * join anew) each time the participant is in the room; `ended` with `{reason, message}`; `problem`
 * with a `CallError` and its `waiting`, or `null` once it is resolved; `event` with each of sfud's
 * events as `{event, data}`; `message` with each message of others; `trackended` with `{source}`
 * when a device or the shared screen has gone.
 */
export class Call extends EventTarget {
  state = "idle"; // idle · joining · awaited · joined · reconnecting · left
  me = null;
  peer = null;
  roomState = new RoomState(null, {});
  streams = new Map(); // id → {stream, participant, source, audio?, video?}
  local = { audio: null, video: null };
  screen = null;
  view = "all"; // all · talkers · heard · chosen

  #signalling;
  #ownsSignalling;
  #listening = new AbortController();
  #options;
  #encryption = null;
  #coming = null; // the peer that is to take the place of the present one
  #destination = null; // {node}: where sfud wants us, until we are connected there
  #key = null;
  #formerKey;
  #admitted = false;
  #reviewing = Promise.resolve();
  #offering = false;
  #rejoining = false;
  #resuming = false;
  #retry = null;
  #following = null;
  #followAgain = false;
  #followLater = null;
  #slots = null;
  #slotsOf = null; // their peer
  #hasMissed = false; // whether events of the slots may be missing
  #seq = null; // of the last event that we know of
  #chosen = new Map(); // stream → the kinds to receive, whatever the view is
  #elements = new Elements((stream, size) => this.#show(stream, size).catch(() => {}));
  #sampler = new Sampler();
  #opened = new Set(); // tracks that the call has opened, and has to stop
  #encodings = new Map(); // source → encodings, if they are not the usual ones

  /**
   * `transport` as `Signalling` has it, or a `signalling` that outlives this call; `room`, `name`;
   * `role`, `mode` and `settings` that are wished for; `key`: a former call's; `token`: an
   * invitation; `view` as `show()` has it; `codec`: preferred for video; `rtc`: an
   * `RTCConfiguration`; `encryption`: `{key, id}` as `Encryption` has it, for end-to-end encryption.
   */
  constructor(given) {
    super();
    const { transport, signalling, encryption, room, name, key = null, view = "all", ...options } =
      given;
    if (!transport === !signalling) {
      throw new CallError({ reason: "bad-options", message: "give a transport or a signalling" });
    }
    Object.assign(this, { room, name, view });
    this.#options = options;
    if (encryption) {
      this.#encryption = new Encryption(encryption);
      this.#options = { ...options, codec: options.codec ?? "vp8" }; // servers read the clear bytes of no other codec
    }
    this.#formerKey = key;
    this.#ownsSignalling = !signalling;
    this.#signalling = signalling ?? new Signalling(transport);
    const { signal } = this.#listening;
    const on = (type, run) => this.#signalling.addEventListener(type, run, { signal });
    on("message", ({ detail }) => this.#take(detail));
    on("open", () => this.#resume());
    on("close", ({ detail }) => this.#interrupted(detail.final));
  }

  get participants() {
    return this.roomState.participants;
  }

  /** Proves our identity to the server after a broken connection. */
  get key() {
    return this.#key ?? this.#formerKey;
  }

  /** Joins, with these tracks if there are any. Rejects with `CallError`. */
  async connect({ audio = null, video = null } = {}) {
    if (this.state !== "idle") {
      throw new CallError({ reason: "wrong-state", message: `the call is ${this.state}` });
    }
    this.#keep("microphone", audio);
    this.#keep("camera", video);
    this.#set("joining");
    try {
      await this.#signalling.opened();
      if (this.state === "left") throw new CallError({ reason: "left", message: ENDINGS.left });
      await this.#enter();
    } catch (error) {
      await this.close();
      throw CallError.of(error);
    }
  }

  /** Leaves the room for good. Tracks that others have opened are not stopped, but for a screen's. */
  async close() {
    if (this.state === "left") return;
    const wasIn = this.state !== "idle";
    this.#set("left");
    this.#disconnect();
    if (wasIn) await this.#signalling.request("leave").catch(() => {});
    this.#release();
  }

  /**
   * Publishes a track as `microphone` or `camera`, or `{video, audio}` as `screen`; another track of
   * the same source takes its place without negotiation. Resolves to the stream's id, or to `null`
   * while the role or the mode does not let it be sent. Rejects with what sfud refused it for.
   */
  async publish(source, media, { encodings } = {}) {
    const isAnother = source !== "screen" && this.peer?.isSending(source);
    this.#keep(source, media, encodings);
    if (!this.peer || !this.roomState.mayOffer(KINDS[source] ?? "screen")) return null;
    if (isAnother) await typed(this.peer.replace(source, media));
    else await typed(this.#review());
    const { stream, refused } = this.peer?.published.get(source) ?? {};
    if (refused) {
      await this.unpublish(source);
      throw new CallError({ reason: refused, message: `sfud refused the ${source} (${refused})` });
    }
    if (isAnother) await this.#announce(source);
    return stream ?? null;
  }

  /** Sends this source no more. */
  async unpublish(source) {
    if (!this.#kept(source)) return;
    const track = this.#kept(source);
    this.#keep(source, null);
    if (this.#opened.delete(track)) track.stop();
    if (this.peer) await typed(this.#review());
  }

  /** Silences the microphone or blackens the camera, both here and at sfud. */
  async mute(source) {
    await this.#enable(source, false);
  }

  async unmute(source) {
    await this.#enable(source, true);
  }

  async #enable(source, enabled) {
    const track = this.#kept(source);
    if (!track) {
      throw new CallError({ reason: "not-published", message: `there is no ${source}` });
    }
    track.enabled = enabled;
    this.#changed();
    if (this.peer) await this.#announce(source);
  }

  #kept(source) {
    return source === "screen" ? this.screen : this.local[KINDS[source]];
  }

  #keep(source, media, encodings) {
    if (source !== "screen" && !KINDS[source]) {
      throw new CallError({ reason: "bad-source", message: `there is no source ${source}` });
    }
    const before = this.#kept(source);
    if (source === "screen") {
      this.screen = media;
      for (const track of [before?.video, before?.audio]) if (before !== media) track?.stop();
    } else {
      this.local[KINDS[source]] = media;
    }
    this.#encodings.set(source, encodings);
    const track = source === "screen" ? media?.video : media;
    if (track && track !== before) this.#watchEnd(source, track);
    this.#changed();
  }

  #watchEnd(source, track) {
    track.addEventListener("ended", () => {
      if (track !== (source === "screen" ? this.screen?.video : this.#kept(source))) return;
      this.dispatchEvent(new CustomEvent("trackended", { detail: { source } }));
      if (this.peer) this.#run(source === "screen" ? this.unpublish(source) : this.#announce(source));
    }, { signal: this.#listening.signal });
  }

  /** Sends a request to the server; rejects with `CallError`. */
  async request(type, fields = {}) {
    return this.#signalling.request(type, fields);
  }

  /** Transceivers of a stream: `{audio, video}`, either may be `null`; `null` without a slot. */
  arriving(stream) {
    return this.#slotsOf === this.peer ? (this.#slots?.of(stream) ?? null) : null;
  }

  /** The stream received on an m-line of ours, by its mid or its receiver's track. */
  streamOn(kind, mid, track) {
    const stream = this.#slotsOf === this.peer ? this.#slots?.on(kind, mid, track) : null;
    return this.streams.get(stream);
  }

  /**
   * `all` receives each stream; `talkers` the participants in sfud's list of talkers, and shared
   * screens; `heard` the sound of those in the list; `chosen` nothing. Each has the subscribed
   * streams besides.
   */
  async show(view) {
    this.view = view;
    this.#changed();
    await this.#follow();
  }

  /** Receives a stream whatever the view is; `audio` or `video` `false` does without that kind. */
  async subscribe(stream, { audio = true, video = true } = {}) {
    if (!this.streams.has(stream)) {
      throw new CallError({ reason: "no-such-stream", message: `there is no stream ${stream}` });
    }
    this.#chosen.set(stream, { audio, video });
    await this.#follow();
    if (this.peer && this.state === "joined" && !this.arriving(stream)) {
      this.#chosen.delete(stream);
      throw new CallError({ reason: "limit-reached", message: "no slot could receive the stream" });
    }
  }

  async unsubscribe(stream) {
    if (this.#chosen.delete(stream)) await this.#follow();
  }

  /**
   * Subscribes to these streams (ids, or `{stream, audio?, video?}`), and to no others but those of
   * the view.
   */
  async set(streams, { view = "chosen" } = {}) {
    const entries = streams.map((it) => (typeof it === "string" ? { stream: it } : it));
    this.#chosen = new Map(
      entries.map(({ stream, audio = true, video = true }) => [stream, { audio, video }]),
    );
    this.view = view;
    await this.#follow();
  }

  /** The tracks on which a stream arrives: `{audio, video}`; each may be `null`. */
  tracks(stream) {
    const { audio, video } = this.arriving(stream) ?? {};
    return { audio: audio?.receiver.track ?? null, video: video?.receiver.track ?? null };
  }

  /**
   * From now on the element shows this stream: no larger layer is received than its largest visible
   * element needs, and none while the page is in the background, but for a picture in picture.
   * `null`: the element shows none any more.
   */
  watchSize(element, stream) {
    if (stream && this.state !== "left") this.#elements.add(element, stream);
    else this.#elements.remove(element);
  }

  /**
   * Opens a `microphone` or `camera` (a certain one by `device`, a device id) or a `screen`, and
   * publishes it. A device that it has opened before is stopped. Resolves to the stream's id, as
   * `publish` does.
   */
  async open(source, options = {}) {
    const media = await (source === "screen" ? openScreen() : openDevice(source, options));
    const before = this.#kept(source);
    if (source !== "screen" && before) media.enabled = before.enabled;
    if (this.state === "left") {
      for (const track of source === "screen" ? [media.video, media.audio] : [media]) track?.stop();
      throw new CallError({ reason: "left", message: ENDINGS.left });
    }
    const stream = await this.publish(source, media, options);
    if (source === "screen") return stream;
    if (this.#opened.has(before)) before.stop();
    this.#opened.delete(before);
    this.#opened.add(media);
    return stream;
  }

  /** Encrypts with the key of this id from now on; the callback `key` is asked for it. */
  useKey(id) {
    if (!this.#encryption) {
      throw new CallError({ reason: "bad-options", message: "the call is not encrypted" });
    }
    this.#encryption.use(id);
  }

  /** Counts of encrypted frames: `{sealed, opened, refused, withoutKey}`; `null` if not encrypted. */
  async encryptionCounts() {
    return this.state === "left" ? null : ((await this.#encryption?.counts()) ?? null);
  }

  /** Gathers candidates and checks paths again, without a new connection. */
  async restartIce() {
    if (!this.peer) throw new CallError({ reason: "not-connected", message: "there is no connection" });
    await typed(this.peer.restart());
  }

  /**
   * Goes over to a new connection to sfud, which is made before the present one ends. What is sent
   * gets other streams; what is received arrives on other tracks.
   */
  async move() {
    this.#reviewing = this.#reviewing.catch(() => {}).then(() => this.#goOver());
    await typed(this.#reviewing);
    await this.#follow();
  }

  /**
   * The samples of what is sent and received, each with its stream; `null` without a connection.
   * With `explain` each received video has sfud's own reasons in `explanation`.
   */
  async statistics({ explain = false } = {}) {
    const { peer } = this;
    if (!peer) return null;
    const sample = await this.#sampler.sample(peer.pc);
    for (const received of sample.received) {
      const stream = this.streamOn(received.kind, received.mid, received.track);
      received.stream = stream?.stream ?? null;
      received.participant = stream?.participant ?? null;
      received.source = stream?.source ?? null;
      if (explain && stream && received.kind === "video") {
        received.explanation = await this.explain(stream.stream).catch(() => null);
      }
    }
    for (const sent of sample.sent) sent.label = peer.labelOf(sent.mid);
    sample.connection = peer.pc.connectionState;
    return sample;
  }

  // ---- Joining and rejoining

  async #enter() {
    const joined = await this.#signalling.request("join", {
      room: this.room, name: this.name, ...this.#wish(),
    });
    if (this.state === "left") throw new CallError({ reason: "left", message: ENDINGS.left });
    this.me = joined.participant;
    this.#key = joined.key;
    this.roomState = new RoomState(this.me, { role: joined.role, mode: joined.mode });
    this.#admitted = joined.state === "joined";
    this.#picture(joined.room);
    if (!this.#admitted) this.#set("awaited");
    await this.#review(); // waiting participants are connected too
    if (this.#key !== joined.key || this.state === "left") return; // denied, or lost meanwhile
    if (this.#admitted) await this.#arrive();
  }

  async #arrive() {
    this.#set("joined");
    this.#joined(false);
    await this.#follow();
  }

  #joined(resumed) {
    this.dispatchEvent(new CustomEvent("joined", { detail: { resumed } }));
  }

  /** The optional fields of `join`. */
  #wish() {
    const { role, mode, settings, token } = this.#options;
    const fields = { role, mode, settings, token, key: this.#formerKey };
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
  }

  /** Updates the connection to our present role and mode; one change after another. */
  #review() {
    const review = async () => {
      if (this.state === "left" || this.state === "idle") return;
      if (!this.roomState.hasTransport) {
        this.peer?.close();
        this.peer = null;
      } else if (!this.peer) {
        await this.#connect();
      } else {
        await this.#sendAll(this.peer);
        await this.peer?.negotiate();
        await this.#announceAll();
      }
      this.#changed();
    };
    return (this.#reviewing = this.#reviewing.catch(() => {}).then(review));
  }

  async #connect() {
    const peer = (this.peer = this.#makePeer("main"));
    await this.#sendAll(peer);
    peer.addSlots(this.#others().length + FIRST_SLOTS);
    await peer.negotiate();
    const refused = [...peer.published.values()].find((it) => it.refused)?.refused;
    if (refused) this.#problem(refused, `sfud does not take your media (${refused}).`);
    await this.#announceAll();
  }

  #makePeer(name, most) {
    const transport = name === "main" ? {} : { transport: name };
    const offer = (sdp, sources) =>
      this.#signalling.request("transport.offer", { sdp, sources, ...transport });
    const peer = new Peer(offer, { ...this.#options, name, most, encryption: this.#encryption });
    peer.addEventListener("state", () => this.#changed());
    peer.addEventListener("lost", () => {
      if (peer !== this.peer) return;
      this.#rejoin("disconnected", "The connection to sfud is lost. Rejoining…");
    });
    return peer;
  }

  /** Makes another connection, sends on both for a while, and ends the former. */
  async #goOver() {
    const former = this.peer;
    if (!former || this.state !== "joined") return;
    const peer = (this.#coming = this.#makePeer(
      former.name === "main" ? "other" : "main", former.most,
    ));
    try {
      await unlessClosed(peer, this.#bringUp(peer, former.slots.length));
    } catch (error) {
      peer.close();
      await this.#endTransport(peer);
      throw error;
    } finally {
      this.#coming = null;
    }
    this.peer = peer;
    for (const source of Object.keys(KINDS)) await this.#announce(source); // as they are by now
    await this.#endTransport(former);
    former.close();
    this.#changed();
  }

  async #bringUp(peer, slots) {
    await this.#sendAll(peer);
    peer.addSlots(slots);
    await peer.negotiate();
    await peer.connected(MOVE_SECONDS);
    await this.#announceAll(peer);
    await new Promise((resolve) => setTimeout(resolve, OVERLAP_MILLISECONDS));
  }

  async #endTransport({ name }) {
    await this.#signalling.request("transport.close", { transport: name }).catch(() => {});
  }

  /** Connects at the node where sfud wants us; the newest wish counts. */
  async #goTo(wanted) {
    this.#destination = wanted;
    if (this.#coming?.name === this.peer?.name) this.#coming?.close(); // it was for an older wish
    const going = this.#reviewing.catch(() => {}).then(() => this.#handOver(wanted));
    this.#reviewing = going;
    try {
      await going;
    } catch (error) {
      // Without the signalling server it is tried again after `resume`.
      if (this.#destination !== wanted || this.state === "reconnecting") return;
      if (error instanceof CallError && !this.peer.isResting) {
        this.#destination = null; // the offer is refused, and sfud asks again
        return;
      }
      await this.#endTransport(this.peer); // else it would look like a connection that has broken
      return this.#offerAgain();
    }
    await this.#follow();
  }

  /**
   * Makes a connection for the same transport beside the present one. As soon as it works, sfud
   * gives it all that the present one has, under the same ids, and the present one is over.
   */
  async #handOver(wanted) {
    const former = this.peer;
    const isThere = this.roomState.self.node === wanted.node;
    if (!former || isThere) this.#destination = null; // the next one is made there anyway
    if (this.#destination !== wanted) return;
    const peer = (this.#coming = this.#makePeer(former.name, former.most));
    try {
      await unlessClosed(peer, this.#bringOver(peer, former));
    } catch (error) {
      if (peer.isClosed) return; // for a newer wish, or as the call connects anew or ends
      peer.close();
      throw error;
    } finally {
      this.#coming = null;
    }
    this.#destination = null;
    if (peer.takeSlots(former) && this.#slotsOf === former) {
      this.#slots.use(peer);
      this.#slotsOf = peer;
    }
    this.peer = peer;
    await this.#sendAll(peer); // a device may be another one by now
    this.#changed();
    await this.#isAt(wanted.node); // until then sfud sends on the former
    former.close();
  }

  async #bringOver(peer, former) {
    peer.copy(former);
    await peer.negotiate();
    former.rest(); // sfud ends it, and it must not be mended then
    await peer.connected(MOVE_SECONDS);
  }

  /** Resolves when sfud says that we are connected at this node, or some time after. */
  #isAt(node) {
    return new Promise((resolve) => {
      const stop = new AbortController();
      const end = () => {
        clearTimeout(timer);
        stop.abort();
        resolve();
      };
      const timer = setTimeout(end, HANDOVER_MILLISECONDS);
      const look = () => this.roomState.self.node === node && end();
      this.addEventListener("change", look, { signal: stop.signal });
      look();
    });
  }

  #closePeers() {
    for (const peer of [this.peer, this.#coming]) peer?.close();
    this.peer = null;
    this.#destination = null;
  }

  #disconnect() {
    this.#closePeers();
    if (this.state === "left") for (const it of [this.screen?.video, this.screen?.audio]) it?.stop();
    if (this.state === "left") this.screen = null;
    this.roomState = new RoomState(null, {});
    this.streams = new Map();
    this.#changed();
  }

  /** The WebSocket is back: the participant is still in the room, or has to join again. */
  async #resume() {
    if (this.state !== "reconnecting" || !this.#key || this.#resuming) return;
    this.#resuming = true; // both an open transport and its first status lead here
    clearTimeout(this.#retry);
    const wanted = this.#destination;
    try {
      const since = this.#seq === null ? {} : { since: this.#seq };
      const { room, events, state } =
        await this.#signalling.request("resume", { key: this.#key, ...since });
      this.#admitted = state === "joined";
      if (room) {
        this.#picture(room);
        this.#hasMissed = true;
      }
      this.#set(state);
      for (const it of events ?? []) this.#event(it);
      if (this.state === "left") return;
      this.#problem(null);
      if (room && this.#isCut) {
        await this.#offerAgain();
      } else {
        await this.#review();
        await this.#follow();
      }
      if (wanted && wanted === this.#destination) this.#run(this.#goTo(wanted));
      if (this.#admitted) this.#joined(true);
    } catch (error) {
      if (!PASSING.has(error.reason)) await this.#rejoin();
      else this.#resumeLater();
    } finally {
      this.#resuming = false;
    }
  }

  #resumeLater() {
    if (this.state === "left" || !this.#key) return; // without a key it joins anew
    if (this.state !== "reconnecting") this.#interrupted(false); // resumed, but not all of it
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#resume(), RETRY_SECONDS * 1000);
  }

  /** Whether a picture of the room says that our connection has ended, unheard. */
  get #isCut() {
    // While an offer is under way, the picture may be from before it.
    return Boolean(this.peer) && !this.#offering
      && this.roomState.self.connection === "disconnected";
  }

  /** Connects again as the same participant. */
  async #offerAgain(
    reason = "disconnected", message = "The connection to sfud was lost. Connecting again…",
  ) {
    if (!this.peer || this.#rejoining) return; // another offer follows anyway
    this.#problem(reason, message, true);
    this.#closePeers();
    this.#changed();
    this.#offering = true;
    try {
      await this.#review();
      await this.#follow();
      this.#problem(null);
    } catch {
      await this.#rejoin("disconnected", "The connection to sfud was lost. Rejoining…");
    } finally {
      this.#offering = false;
    }
  }

  /** Starts over, as another participant of the same name. */
  async #rejoin(reason, message) {
    if (this.#rejoining || this.state === "left") return;
    this.#rejoining = true;
    if (message) this.#problem(reason, message, true);
    clearTimeout(this.#retry);
    this.#forgetKey();
    this.#disconnect();
    this.#set("reconnecting");
    try {
      await this.#enter();
      this.#problem(null);
    } catch (error) {
      this.#disconnect();
      if (this.state === "left") return;
      this.#forgetKey(); // nothing is left to resume
      if (!PASSING.has(error.reason)) this.#end(error.reason, `Could not rejoin: ${error.message}`);
      else this.#retry = setTimeout(() => this.#rejoin(), RETRY_SECONDS * 1000);
    } finally {
      this.#rejoining = false;
    }
  }

  #forgetKey() {
    this.#formerKey = this.#key ?? this.#formerKey;
    this.#key = null;
  }

  #interrupted(isFinal) {
    if (!["awaited", "joined", "reconnecting"].includes(this.state)) return;
    if (isFinal) return this.#end("not-connected", "The connection to the signalling server is lost.");
    this.#set("reconnecting");
    const message = "The connection to the signalling server is lost. Reconnecting…";
    this.#problem("not-connected", message, true);
  }

  #end(reason, message) {
    this.#set("left");
    this.#disconnect();
    this.#problem(reason, message);
    this.dispatchEvent(new CustomEvent("ended", { detail: { reason, message } }));
    this.#release();
  }

  /** Ends as an event says. */
  #endBy(reason, detail) {
    this.#end(reason, `${ENDINGS[reason] ?? ENDINGS.dropped}${detail ? `: ${detail}` : ""}.`);
  }

  /** Leaves nothing that runs by itself. */
  #release() {
    this.#listening.abort();
    clearTimeout(this.#retry);
    clearTimeout(this.#followLater);
    this.#elements.close();
    this.#encryption?.close();
    for (const track of this.#opened) track.stop();
    this.#opened.clear();
    if (this.#ownsSignalling) this.#signalling.close();
  }

  // ---- Messages of the server

  #take(message) {
    if (this.state === "idle" || this.state === "left") return;
    if (message.type === "status" && this.state === "joining") return; // `join` itself reports it
    switch (message.type) {
      case "event":
        this.#event(message);
        break;
      case "room":
        this.#picture(message.room);
        this.#hasMissed = true;
        if (this.#isCut) this.#offerAgain();
        else if (this.state === "awaited" && this.#admitted) this.#run(this.#arrive());
        else this.#follow();
        break;
      case "move":
        this.#run(this.move());
        break;
      case "gone":
        this.#rejoin("gone", "sfud was restarted. Rejoining…");
        break;
      case "status":
        if (!message.sfud) {
          this.#problem("sfud-not-running", "sfud is not running, or cannot be reached. Waiting for it…", true);
        } else if (this.state === "joined" || this.state === "awaited") {
          this.#problem(null);
        } else {
          this.#resume();
        }
        break;
    }
  }

  #picture(room) {
    this.#seq = room.seq ?? null;
    this.roomState.picture(room);
    this.streams = new Map(room.streams.map((it) => [it.stream, it]));
    this.#changed();
  }

  #event({ event, data, time, seq = this.#seq }) {
    this.#seq = seq;
    const isMine = data.participant === this.me;
    this.roomState.event(event, data);
    this.#apply(event, data, isMine);
    if (event === "message.received") {
      this.dispatchEvent(new CustomEvent("message", { detail: { ...data, time } }));
    }
    this.dispatchEvent(new CustomEvent("event", { detail: { event, data } }));
  }

  #apply(event, data, isMine) {
    switch (event) {
      case "participant.approved":
        if (isMine) this.#admitted = true; // a snapshot of the room follows
        break;
      case "participant.denied":
        if (isMine) return this.#endBy("denied", data.detail);
        break;
      case "participant.left":
        if (isMine) return this.#endBy(data.reason, data.detail);
        break;
      case "participant.changed":
        if (isMine) this.name = data.participantInfo.name;
        break;
      case "participant.connection":
        // A node that is lost is `moveWanted`.
        if (isMine && data.connection === "disconnected" && data.reason !== "node-lost" &&
            this.roomState.hasTransport) {
          return void this.#rejoin("disconnected", "The connection to sfud was lost. Rejoining…");
        }
        break;
      case "participant.moveWanted":
        if (isMine && data.reason === "drain") {
          return void this.#run(this.#goTo({ node: data.node }));
        }
        if (isMine) {
          const message = "The room's host is lost, and another one goes on with it.";
          return void this.#offerAgain("node-lost", `${message} Connecting again…`);
        }
        break;
      case "participant.roleChanged":
      case "participant.modeChanged":
        if (isMine) this.#run(this.#review());
        break;
      case "room.updated":
        this.#run(this.#review());
        break;
      case "room.stateChanged":
        if (data.state === "ended") this.#run(this.#review());
        break;
      case "stream.created":
        this.streams.set(data.stream, data.streamInfo);
        // In a lecture it begins with the floor, and media that we switched off stays off.
        if (isMine) this.#run(this.#announceAll());
        break;
      case "stream.changed":
        this.streams.set(data.stream, data.streamInfo);
        break;
      case "subscription.connected":
        this.#slots?.connected(data);
        this.#elements.refresh();
        return this.#changed();
      case "stream.layersWanted":
        if (isMine) this.#run(this.#sendWanted(data));
        break;
      case "stream.destroyed":
        this.streams.delete(data.stream);
        this.#chosen.delete(data.stream);
        this.#slots?.ended(data.stream);
        break;
      case "room.closed":
        return this.#endBy("room-closed", data.detail);
    }
    this.#changed();
    this.#follow();
  }

  // ---- Slots follow streams

  #others() {
    return [...this.streams.values()].filter((it) => it.participant !== this.me);
  }

  /** Assigns the slots to the room's streams. One at a time; a call meanwhile repeats it. */
  async #follow() {
    this.#followAgain = true;
    this.#following ??= (async () => {
      while (this.#followAgain) {
        this.#followAgain = false;
        try {
          await this.#reviewing.catch(() => {}); // whose offer makes the slots
          await this.#followOnce(this.peer);
        } catch (error) {
          if (this.state === "left") break;
          if (!PASSING.has(error.reason)) {
            this.#problem(error.reason ?? "failed", `Streams: ${error.message}`);
          } else { // no event may come that repeats it
            clearTimeout(this.#followLater);
            this.#followLater = setTimeout(() => this.#follow(), RETRY_SECONDS * 1000);
          }
        }
      }
      this.#following = null;
    })();
    await this.#following;
  }

  async #followOnce(peer) {
    if (!peer || this.state !== "joined") return;
    if (this.#slotsOf !== peer) {
      this.#slots = new Slots(peer, (type, fields) => this.#signalling.request(type, fields));
      this.#slotsOf = peer;
    } else if (this.#hasMissed) {
      await this.#slots.refollow();
    }
    this.#hasMissed = false;
    const follows = this.view === "talkers" || this.view === "heard";
    const talkers = {
      count: follows ? this.roomState.settings.maxActiveTalkers : 0, video: this.view !== "heard",
    };
    const wanted = this.#others().flatMap((it) => this.#wanted(it));
    if (!(await this.#slots.settle(this.#others(), wanted, talkers))) {
      this.#problem("limit-reached", "There are more people here than this page can show.");
    }
    this.#elements.refresh();
    this.#changed();
  }

  /** A stream that is to have a slot of its own, with the kinds to receive; or none. */
  #wanted({ stream, source, audio, video }) {
    const chosen = this.#chosen.get(stream);
    const isSeen = this.view === "all" || (this.view === "talkers" && source === "screen");
    if (!chosen && !isSeen) return [];
    const kinds = chosen ?? { audio: true, video: true };
    const it = {
      stream, kinds, audio: Boolean(audio) && kinds.audio, video: Boolean(video) && kinds.video,
    };
    return it.audio || it.video ? [it] : [];
  }

  // ---- Sending

  async #sendAll(peer) {
    for (const [source, kind] of Object.entries(KINDS)) {
      const track = this.roomState.mayOffer(kind) ? this.local[kind] : null;
      const encodings = track && kind === "video" ? cameraEncodings(track) : undefined;
      await peer.send(source, track, this.#encodings.get(source) ?? encodings);
    }
    if (this.screen && !this.roomState.mayOffer("screen")) this.#keep("screen", null);
    const { video = null, audio = null } = this.screen ?? {};
    await peer.send("screen", video, this.#encodings.get("screen") ?? SCREEN_ENCODINGS);
    await peer.send("screen-audio", audio);
  }

  /** Encodes and sends only the layers that are watched. */
  async #sendWanted({ stream, layers }) {
    const label = this.streams.get(stream)?.source === "screen" ? "screen" : "camera";
    const sends = (peer) => [...(peer?.published.values() ?? [])].some((it) => it.stream === stream);
    const [peer, coming] = [this.peer, this.#coming];
    const isSame = coming?.name === peer?.name; // both send the same streams
    const peers = isSame ? [peer, coming] : [sends(coming) ? coming : peer];
    await Promise.all(peers.map((it) => it?.setLayers(label, layers)));
  }

  /** Requests no larger layer of a stream than this, in pixels; sent again only when it changes. */
  async prefer(stream, width, height) {
    await this.#show(stream, { width, height });
  }

  /** The same; without a size no picture is received at all. */
  async #show(stream, size) {
    if (this.state !== "joined" || !this.arriving(stream)) return;
    await this.#slots.prefer(stream, size);
  }

  /** Why a stream is received as it is: from sfud's `subscription.explain`. */
  async explain(stream) {
    const subscription = this.#slots?.subscription(stream);
    return subscription ? this.request("subscription.explain", { subscription }) : null;
  }

  async #announceAll(peer = this.peer) {
    for (const [source, kind] of Object.entries(KINDS)) {
      if (this.local[kind]?.enabled === false) await this.#announce(source, peer);
    }
  }

  /** Tells sfud whether a source is muted. */
  async #announce(source, peer = this.peer) {
    const [kind, track] = [KINDS[source], this.#kept(source)];
    const own = [...this.streams.values()].find(
      (it) => it.participant === this.me && it.source !== "screen",
    );
    const stream = peer?.published.get(source)?.stream ?? own?.stream;
    if (!track || !this.streams.has(stream)) return; // withheld: `stream.created` reports its start
    const isOn = track.enabled && track.readyState === "live";
    await this.#signalling.request("stream.update", { stream, [kind]: isOn });
  }

  #set(state) {
    this.state = state;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** Runs a task in the background and reports its failure. */
  #run(task) {
    task.catch((error) => {
      if (PASSING.has(error.reason) || this.state === "left") return;
      this.#problem(error.reason ?? "failed", error.message);
    });
  }

  /** With `waiting` the call itself tries on; without a reason it has succeeded. */
  #problem(reason, message, waiting = false) {
    const detail = reason && Object.assign(new CallError({ reason, message }), { waiting });
    this.dispatchEvent(new CustomEvent("problem", { detail }));
  }
}
