// State of a room without its streams: participants, waiting people, and their rights.

export const MODERATOR = "moderator";

/** Applies the room's events to a snapshot of it, until the next snapshot. */
export class RoomState {
  participants = new Map(); // id → {participant, name, role, mode, hardMuted, connection, …}
  awaited = new Map(); // the same of those who wait; only for moderators
  raisedHands = []; // in the order in which they were raised; one's own, or all for moderators
  holder = null; // the floor's holder, if known to us
  pins = [];
  talkers = []; // without ourselves: {participant, stream, talking, pinned}, the newest first
  locked = false;
  hardMuted = false;
  recording = false;
  streaming = false;
  state = "ongoing";
  settings = { mode: "group", roles: [] };

  /** `wish`: the `role` and `mode` that we have once we are admitted. */
  constructor(me, wish) {
    this.me = me;
    this.wish = wish;
  }

  picture(room) {
    this.participants = new Map(room.participants.map((it) => [it.participant, it]));
    this.awaited = new Map(room.awaited.map((it) => [it.participant, it]));
    this.raisedHands = [...room.floor.requested];
    this.holder = room.floor.granted[0] ?? null;
    this.pins = [...room.pins];
    this.talkers = room.talkers.filter((it) => it.participant !== this.me);
    this.locked = room.locked;
    this.hardMuted = room.hardMuted;
    this.recording = Boolean(room.recording);
    this.streaming = Boolean(room.streaming);
    this.state = room.state;
    this.settings = room.settings;
  }

  event(event, data) {
    const id = data.participant;
    switch (event) {
      case "participant.joined":
        this.awaited.delete(id);
        this.participants.set(id, data.participantInfo);
        break;
      case "participant.awaited":
        this.awaited.set(id, data.participantInfo);
        break;
      case "participant.changed":
        for (const people of [this.awaited, this.participants]) {
          if (people.has(id)) people.set(id, data.participantInfo);
        }
        break;
      case "participant.approved":
      case "participant.denied":
        this.awaited.delete(id);
        break;
      case "participant.left":
        for (const people of [this.awaited, this.participants]) people.delete(id);
        this.#lower(id);
        break;
      case "participant.connection":
        this.#change(id, { connection: data.connection });
        break;
      case "participant.modeChanged":
        this.#change(id, { mode: data.mode });
        break;
      case "participant.roleChanged":
        this.#change(id, { role: data.role });
        if (data.role === MODERATOR) this.#lower(id);
        if (id === this.me && data.role !== MODERATOR) this.#forgetOthers();
        break;
      case "participant.hardMuted":
      case "participant.hardUnmuted": {
        const rest = (this.participants.get(id)?.hardMuted ?? [])
          .filter((kind) => !data.media.includes(kind));
        const muted = event === "participant.hardMuted" ? [...rest, ...data.media] : rest;
        this.#change(id, { hardMuted: muted });
        break;
      }
      case "floor.requested":
        this.raisedHands = [...this.raisedHands.filter((it) => it !== id), id];
        break;
      case "floor.granted":
        this.#lower(id);
        this.holder = id;
        break;
      case "floor.cancelled":
      case "floor.denied":
      case "floor.finished":
      case "floor.released":
        this.#lower(id);
        break;
      case "pins.changed":
        this.pins = data.pins;
        break;
      case "talkers.changed":
        this.talkers = data.talkers;
        break;
      case "room.locked":
      case "room.unlocked":
        this.locked = event === "room.locked";
        break;
      case "room.hardMuted":
      case "room.hardUnmuted":
        this.hardMuted = event === "room.hardMuted";
        break;
      case "recording.started":
      case "recording.stopped":
        this.recording = event === "recording.started";
        break;
      // `streaming.stop` ends all of them.
      case "streaming.started":
      case "streaming.stopped":
        this.streaming = event === "streaming.started";
        break;
      case "room.stateChanged":
        this.state = data.state;
        break;
      case "room.updated":
        this.settings = data.settings;
        break;
    }
  }

  /** Our own entry; until we are admitted, the one that we shall have. */
  get self() {
    return this.participants.get(this.me) ?? { hardMuted: [], ...this.wish };
  }

  get isModerator() {
    return this.self.role === MODERATOR;
  }

  /** Whether our role has this permission. */
  may(permission) {
    const role = this.settings.roles.find((it) => it.name === this.self.role);
    return role?.permissions?.includes(permission) === true;
  }

  /** Whether messages pass: in a live event from the opened doors to the end. */
  get hasMessages() {
    return !this.isLive || this.state === "ready" || this.state === "ongoing";
  }

  get isLive() {
    return this.settings.mode.startsWith("single_host");
  }

  /** Whether we have a media connection. */
  get hasTransport() {
    return this.self.mode !== "SIGNALLING_ONLY" && this.state !== "ended";
  }

  /** Whether our `audio`, `video` or `screen` is accepted in an offer, withheld or not. */
  mayOffer(kind) {
    const { role, mode } = this.self;
    if (mode !== "SEND_AND_RECV" || (this.isLive && role !== MODERATOR)) return false;
    if (this.settings.mode === "single_host_audio_only" && kind !== "audio") return false;
    // True, or an object of limits.
    return Boolean(this.settings.roles.find((it) => it.name === role)?.publish?.[kind]);
  }

  /** Whether a moderator has muted this kind of ours. */
  isMuted(kind) {
    if (this.self.hardMuted.includes(kind)) return true;
    return this.hardMuted && kind === "audio" && !this.isModerator;
  }

  /** Our state for the floor in a lecture: none · raised · held; elsewhere `null`. */
  get floor() {
    if (this.settings.mode !== "lecture" || this.isModerator) return null;
    if (this.holder === this.me) return "held";
    return this.raisedHands.includes(this.me) ? "raised" : "none";
  }

  nameOf(id) {
    return this.participants.get(id)?.name || this.awaited.get(id)?.name || id;
  }

  #change(id, what) {
    const participant = this.participants.get(id);
    if (participant) this.participants.set(id, { ...participant, ...what });
  }

  #lower(id) {
    this.raisedHands = this.raisedHands.filter((it) => it !== id);
    if (this.holder === id) this.holder = null;
  }

  #forgetOthers() {
    this.awaited.clear();
    this.raisedHands = this.raisedHands.filter((it) => it === this.me);
    if (this.holder !== this.me) this.holder = null;
  }
}
