// Assignment of streams to slots. Some streams have a slot of their own. Other slots may follow the
// list of talkers: sfud switches them to talking or pinned participants, and sends events.

import { CallError } from "./errors.js";

const SPARE_SLOTS = 2;

/** Maximum of following slots of each kind; a room may list more talkers than can be shown. */
const MOST_FOLLOWING = 12;

/** Whether a slot is in no answer yet, maybe because that of the last offer was lost. */
const isWaiting = ({ audio }) => audio.currentDirection === null;

/** Keeps the slots of one `Peer` in step with the room's streams. */
export class Slots {
  #request;
  #peer;
  #seats = new Map(); // mid of a slot that follows → stream
  #subscriptions = new Map(); // stream → sfud's id of our subscription
  #preferred = new Map(); // stream → the requested size
  #paused = new Set(); // streams whose picture is switched off, as nobody looks
  #asked = "0"; // how many slots were requested to follow, and of which kinds
  #watched = new Map(); // streams with slots of their own, as sfud knows them: stream → its mids

  /** `request(method, params)` sends a request to the signalling server. */
  constructor(peer, request) {
    this.#peer = peer;
    this.#request = request;
  }

  /** Goes on with another peer, whose slots are assigned as those of the present one. */
  use(peer) {
    this.#peer = peer;
  }

  /** Transceivers of a stream: `{audio, video}`, either may be `null`; `null` without a slot. */
  of(stream) {
    const own = this.#peer.slots.find((slot) => slot.stream === stream);
    if (own) return { audio: own.hasAudio ? own.audio : null, video: own.hasVideo ? own.video : null };
    const [audio, video] = ["audio", "video"].map((kind) =>
      this.#following.map((slot) => slot[kind]).find((it) => this.#seats.get(it.mid) === stream) ?? null,
    );
    return audio || video ? { audio, video } : null;
  }

  /** The stream that arrives on an m-line, if any: by its mid, or by the track of its receiver. */
  on(kind, mid, track) {
    const slot = this.#peer.slots.find((it) => it[kind].mid === mid || it[kind].receiver.track.id === track);
    return (slot?.follows ? this.#seats.get(slot[kind].mid) : slot?.stream) ?? null;
  }

  /** The id of our subscription to a stream, if there is one. */
  subscription(stream) {
    return this.of(stream) ? this.#subscriptions.get(stream) : undefined;
  }

  /** Gives each of the `wanted`, `{stream, audio, video}`, a slot of its own; `talkers`,
   *  `{count, video}`, says how many follow the talkers, and whether with their pictures. `streams`
   *  are all those of others. Returns whether there are enough slots. */
  async settle(streams, wanted, talkers) {
    this.#release(streams, wanted);
    await this.#watch();
    await this.#follow(Math.min(talkers.count, MOST_FOLLOWING), talkers.video);
    const carried = new Set(this.#peer.slots.map((slot) => slot.stream));
    const missing = wanted.filter((it) => !carried.has(it.stream));
    await this.#provide(missing.length, SPARE_SLOTS);
    const free = this.#free;
    missing.slice(0, free.length).forEach(({ stream, audio, video }, index) => {
      const kinds = { hasAudio: audio, hasVideo: video };
      Object.assign(free[index], { stream, ...kinds });
      this.#forgetSize(stream);
    });
    await this.#watch();
    return missing.length <= free.length;
  }

  /** Applies a `subscription.connected`, which names the publisher in each following slot. */
  connected({ subscription, stream, audioMid, videoMid }) {
    this.#subscriptions.set(stream, subscription);
    const mids = this.#following.flatMap((slot) => [slot.audio.mid, slot.video.mid]);
    const own = [audioMid, videoMid].filter((mid) => mids.includes(mid));
    for (const [mid, seated] of this.#seats) if (seated === stream) this.#seats.delete(mid);
    if (own.length === 0) return; // it has a slot of its own now
    this.#forgetSize(stream);
    for (const mid of own) this.#seats.set(mid, stream);
  }

  /** Applies a `stream.destroyed`: our subscription to it has ended too. */
  ended(stream) {
    for (const known of [this.#subscriptions, this.#watched, this.#paused]) known.delete(stream);
    for (const slot of this.#peer.slots) if (slot.stream === stream) slot.stream = null;
  }

  /** Makes the next `settle` assign all slots anew, after events may have been missed. */
  async refollow() {
    this.#watched.set(null, ""); // differs from whatever is wanted
    await this.#follow(0);
  }

  /** Requests no larger layer of a stream than this, or, without a size, no picture; sent again only
   *  when it changes. */
  async prefer(stream, size) {
    const subscription = this.subscription(stream);
    if (!subscription) return;
    const before = this.#preferred.get(stream);
    const [isPaused, wasPaused] = [size === null, this.#paused.has(stream)];
    const change = isPaused === wasPaused ? {} : { video: !isPaused };
    if (!isPaused && !(before?.width === size.width && before.height === size.height)) {
      this.#preferred.set(stream, size);
      change.preferredResolution = size;
    }
    if (Object.keys(change).length === 0) return;
    if (isPaused) this.#paused.add(stream);
    else this.#paused.delete(stream);
    await this.#request("subscription.update", { subscription, ...change });
  }

  #forgetSize(stream) {
    this.#preferred.delete(stream);
    this.#paused.delete(stream);
  }

  get #following() {
    return this.#peer.slots.filter((slot) => slot.follows);
  }

  /** Free slots that sfud knows of. */
  get #free() {
    return this.#peer.slots.filter((it) =>
      it.stream === null && !it.follows && it.audio.mid !== null && !isWaiting(it));
  }

  async #provide(count, spare = 0) {
    const missing = count - this.#free.length;
    if (missing <= 0) return;
    const waiting = this.#peer.slots.filter(isWaiting).length;
    const isLonger = missing > waiting && this.#peer.addSlots(missing - waiting + spare);
    if (isLonger || waiting > 0) await this.#peer.negotiate();
  }

  /** Empties the slots of streams that have ended, or that no longer get slots of their own. */
  #release(streams, wanted) {
    for (const known of [this.#subscriptions, this.#watched]) {
      for (const stream of known.keys()) {
        // Of those that have ended sfud need not be told.
        if (stream && !streams.some((it) => it.stream === stream)) known.delete(stream);
      }
    }
    for (const slot of this.#peer.slots) {
      if (slot.stream === null) continue;
      const stream = wanted.find((it) => it.stream === slot.stream);
      // A stream with a new kind, or one kind of which is not wanted any more, is subscribed to anew.
      const lacks = (kind, has) => stream[kind] && !has;
      const fits = stream && !lacks("audio", slot.hasAudio) && !lacks("video", slot.hasVideo)
        && !(slot.hasAudio && stream.kinds.audio === false)
        && !(slot.hasVideo && stream.kinds.video === false);
      if (!fits) slot.stream = null;
    }
  }

  async #follow(count, video = true) {
    const asked = count === 0 ? "0" : `${count} ${video}`;
    if (this.#asked === asked) return;
    await this.#provide(count - this.#following.length);
    this.#following.slice(count).forEach((slot) => { slot.follows = false; });
    this.#free.slice(0, count - this.#following.length).forEach((slot) => { slot.follows = true; });
    const mids = (kind) => this.#following.map((slot) => slot[kind].mid);
    const [audioMids, videoMids] = [mids("audio"), video ? mids("video") : []];
    await this.#request("talkers.subscribe", { audioMids, videoMids });
    this.#asked = asked;
    const kept = new Set([...audioMids, ...videoMids]);
    for (const mid of this.#seats.keys()) if (!kept.has(mid)) this.#seats.delete(mid);
  }

  /** Tells sfud all streams that have slots of their own: others end, these stay or begin. */
  async #watch() {
    const subscriptions = this.#peer.slots.filter((slot) => slot.stream !== null).map((slot) => ({
      stream: slot.stream,
      ...(slot.hasAudio ? { audioMid: slot.audio.mid } : {}),
      ...(slot.hasVideo ? { videoMid: slot.video.mid } : {}),
    }));
    const watched = new Map(subscriptions.map((it) => [it.stream, JSON.stringify(it)]));
    const isKnown = ([stream, mids]) => this.#watched.get(stream) === mids;
    if (watched.size === this.#watched.size && [...watched].every(isKnown)) return;
    for (const it of subscriptions) {
      const preferredResolution = this.#preferred.get(it.stream);
      if (preferredResolution) Object.assign(it, { preferredResolution });
    }
    const { results } = await this.#request("subscription.set", { subscriptions });
    this.#watched = watched;
    let problem = null;
    for (const { stream, subscription, error } of results) {
      if (subscription) this.#subscriptions.set(stream, subscription);
      if (!error) continue;
      const slot = this.#peer.slots.find((it) => it.stream === stream);
      if (slot) slot.stream = null; // else an event has said so meanwhile
      if (error.data?.reason !== "no-such-stream") problem = error; // else it has just ended
    }
    if (problem) {
      const { message, code, data } = problem;
      throw new CallError({ reason: data?.reason ?? "failed", message, code });
    }
  }
}
