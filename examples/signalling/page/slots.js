// Assignment of streams to slots. In the *grid* there is a slot for each stream of others. On the
// *stage* some slots follow the list of talkers: sfud switches them to talking or pinned
// participants, and sends events; only shared screens have slots of their own there.

const SPARE_SLOTS = 2;

/** Maximum of following slots of each kind; a room may list more talkers than can be shown. */
const MOST_FOLLOWING = 12;

/** Keeps the slots of one `Peer` in step with the room's streams. */
export class Slots {
  #request;
  #peer;
  #seats = new Map(); // mid of a slot that follows → stream
  #preferred = new Map(); // stream → the requested size
  #asked = 0; // slots requested to follow

  /** `request(type, fields)` sends a request to the signalling server. */
  constructor(peer, request) {
    this.#peer = peer;
    this.#request = request;
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

  /** Assigns the slots to these streams of others; `talkers` slots follow the talkers, with 0 all
   *  streams have slots of their own. Returns whether there are enough slots. */
  async settle(streams, talkers) {
    const wanted = streams.filter((it) => talkers === 0 || it.source === "screen");
    await this.#release(streams, wanted);
    await this.#follow(Math.min(talkers, MOST_FOLLOWING));
    const carried = new Set(this.#peer.slots.map((slot) => slot.stream));
    const missing = wanted.filter((it) => !carried.has(it.stream));
    await this.#provide(missing.length, SPARE_SLOTS);
    for (const stream of missing) {
      const slot = this.#free[0];
      if (!slot) return false;
      await this.#subscribe(slot, stream);
    }
    return true;
  }

  /** Applies a `subscription.connected`, which names the publisher in each following slot. */
  connected({ stream, audioMid, videoMid }) {
    const mids = this.#following.flatMap((slot) => [slot.audio.mid, slot.video.mid]);
    const own = [audioMid, videoMid].filter((mid) => mids.includes(mid));
    if (own.length === 0) return;
    this.#preferred.delete(stream);
    for (const [mid, seated] of this.#seats) if (seated === stream) this.#seats.delete(mid);
    for (const mid of own) this.#seats.set(mid, stream);
  }

  /** Makes sfud send all assignments again, after events may have been missed. */
  async refollow() {
    const count = this.#asked;
    await this.#follow(0);
    await this.#follow(count);
  }

  /** Requests no larger layer of a stream than this; sent again only when it changes. */
  async prefer(stream, width, height) {
    const size = `${width}x${height}`;
    if (!this.of(stream) || this.#preferred.get(stream) === size) return;
    this.#preferred.set(stream, size);
    await this.#request("prefer", { stream, width, height });
  }

  get #following() {
    return this.#peer.slots.filter((slot) => slot.follows);
  }

  /** Free slots that sfud knows of. */
  get #free() {
    return this.#peer.slots.filter((it) => it.stream === null && !it.follows && it.audio.mid !== null);
  }

  async #provide(count, spare = 0) {
    const missing = count - this.#free.length;
    if (missing > 0 && this.#peer.addSlots(missing + spare)) await this.#peer.negotiate();
  }

  /** Empties the slots of streams that have ended, or that no longer get slots of their own. */
  async #release(streams, wanted) {
    for (const slot of this.#peer.slots) {
      if (!streams.some((it) => it.stream === slot.stream)) slot.stream = null;
      if (slot.stream === null) continue;
      const stream = wanted.find((it) => it.stream === slot.stream);
      if (stream && (!stream.audio || slot.hasAudio) && (!stream.video || slot.hasVideo)) continue;
      // A stream with a new kind is subscribed to again, with both.
      await this.#request("unsubscribe", { stream: slot.stream });
      slot.stream = null;
    }
  }

  async #follow(count) {
    if (this.#asked === count) return;
    await this.#provide(count - this.#following.length);
    this.#following.slice(count).forEach((slot) => { slot.follows = false; });
    this.#free.slice(0, count - this.#following.length).forEach((slot) => { slot.follows = true; });
    const mids = (kind) => this.#following.map((slot) => slot[kind].mid);
    await this.#request("follow", { audioMids: mids("audio"), videoMids: mids("video") });
    this.#asked = count;
    const kept = new Set([...mids("audio"), ...mids("video")]);
    for (const mid of this.#seats.keys()) if (!kept.has(mid)) this.#seats.delete(mid);
  }

  async #subscribe(slot, { stream, audio, video }) {
    Object.assign(slot, { stream, hasAudio: Boolean(audio), hasVideo: Boolean(video) });
    this.#preferred.delete(stream);
    const mids = {};
    if (audio) mids.audioMid = slot.audio.mid;
    if (video) mids.videoMid = slot.video.mid;
    try {
      await this.#request("subscribe", { stream, ...mids });
    } catch (error) {
      slot.stream = null;
      if (error.reason !== "no-such-stream") throw error; // otherwise it ended meanwhile
    }
  }
}
