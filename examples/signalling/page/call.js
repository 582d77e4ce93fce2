// One participant's call: the room's state, and a peer connection that follows it.

import { cameraEncodings } from "./media.js";
import { Peer } from "./peer.js";
import { RoomState } from "./roomstate.js";
import { Slots } from "./slots.js";

const FIRST_SLOTS = 2; // in addition to those for present participants
const RETRY_SECONDS = 2;
const SCREEN_ENCODINGS = [{ maxBitrate: 2_500_000 }];

/** The topics of an invitation on stage, and of the answer to it. */
const [INVITATION, ANSWER] = ["HOSTREQUESTED", "ACK"];

/** Why a participant is out of the room, by the reason of `participant.left`. */
const ENDINGS = {
  dropped: "You were taken out of the room",
  disconnected: "Your connection was lost",
  left: "You have left the room",
  "room-closed": "The room was closed",
  shutdown: "The server was shut down",
};

const because = ({ detail }) => (detail ? `: ${detail}` : "");

/** Reasons of temporary refusals. */
const PASSING = new Set(["not-connected", "sfud-not-running", "timeout"]);

/**
 * Dispatches `change` whenever the view has to be updated, and `problem` with a message to people
 * as `{message, waiting}`, or `null` once it is resolved. `told` is good news of the same shape.
 * `asked` has a question to answer with `answer()`: `{kind: "role", request, role, by, expires}` or
 * `{kind: "stage", by}`.
 */
export class Call extends EventTarget {
  state = "idle"; // idle · joining · awaited · joined · reconnecting · left
  me = null;
  peer = null;
  roomState = new RoomState(null, {});
  streams = new Map(); // id → {stream, participant, source, audio?, video?}
  local = { audio: null, video: null };
  screen = null;
  layout = "grid"; // or stage: only talking and pinned participants

  #signalling;
  #codec;
  #wish;
  #key = null;
  #formerKey;
  #token;
  #admitted = false;
  #reviewing = Promise.resolve();
  #rejoining = false;
  #following = null;
  #followAgain = false;
  #slots = null;
  #slotsOf = null; // their peer
  #hasMissed = false; // whether events of the slots may be missing

  /**
   * `wish`: the requested `role`, `mode` and `settings` of the room; `key`: a former call's;
   * `token`: an invitation.
   */
  constructor(signalling, { room, name, codec = null, wish = {}, key = null, token = null }) {
    super();
    this.#token = token;
    this.#wish = wish;
    this.#formerKey = key;
    this.room = room;
    this.name = name;
    this.#signalling = signalling;
    this.#codec = codec;
    signalling.addEventListener("message", ({ detail }) => this.#take(detail));
    signalling.addEventListener("open", () => this.#resume());
    signalling.addEventListener("close", () => this.#interrupted());
  }

  get participants() {
    return this.roomState.participants;
  }

  /** Proves our identity to the server after a broken connection. */
  get key() {
    return this.#key ?? this.#formerKey;
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

  /** Switches the microphone or the camera off or on, both here and at sfud. */
  async setEnabled(kind, enabled) {
    this.local[kind].enabled = enabled;
    this.#changed();
    await this.#announce(kind);
  }

  /** Sends a device that was missing at the start. */
  async addDevice(kind, track) {
    this.local[kind] = track;
    this.#changed();
    await this.#review();
  }

  /** Sends a request to the server; throws `Refused`. */
  async request(type, fields = {}) {
    return this.#signalling.request(type, fields);
  }

  /** Invites a participant without media on stage; one who accepts changes the mode itself. */
  async invite(participant) {
    const payload = { receiverId: participant, senderId: this.me, senderName: this.name };
    const message = "Request for mode change your mode";
    await this.request("message.publish", { topic: INVITATION, message, payload, to: [participant] });
  }

  /** Answers the question of an `asked` event. */
  async answer(question, accepts) {
    if (question.kind === "role") {
      const method = accepts ? "role.accept" : "role.decline";
      await this.request(method, { request: question.request });
      return;
    }
    const mode = { participant: this.me, mode: "SEND_AND_RECV" };
    if (accepts) await this.request("participant.setMode", mode);
    const payload = { receiverId: question.by, accpeterName: this.name }; // spelt as in VideoSDK's
    const message = accepts ? "ACCEPTED" : "DECLINED";
    await this.request("message.publish", { topic: ANSWER, message, payload, to: [question.by] });
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

  /** Transceivers of a stream: `{audio, video}`, either may be `null`; `null` without a slot. */
  arriving(stream) {
    return this.#slotsOf === this.peer ? (this.#slots?.of(stream) ?? null) : null;
  }

  /** The stream received on an m-line of ours, by its mid or its receiver's track. */
  streamOn(kind, mid, track) {
    const stream = this.#slotsOf === this.peer ? this.#slots?.on(kind, mid, track) : null;
    return this.streams.get(stream);
  }

  /** `grid` shows everybody; `stage` the participants in sfud's list of talkers. */
  async show(layout) {
    this.layout = layout;
    this.#changed();
    await this.#follow();
  }

  // ---- Joining and rejoining

  async #enter() {
    const joined = await this.#signalling.request("join", {
      room: this.room, name: this.name, ...this.#wish,
      ...(this.#formerKey ? { key: this.#formerKey } : {}),
      ...(this.#token ? { token: this.#token } : {}),
    });
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
    await this.#listen();
    await this.#follow();
  }

  /** Subscribes to the messages that this page itself uses. */
  async #listen() {
    if (!this.roomState.hasMessages) return;
    for (const topic of [INVITATION, ANSWER]) await this.request("message.subscribe", { topic });
  }

  /** Asks the questions that came while the connection was broken. */
  async #askAgain() {
    const { requests } = await this.request("role.requests");
    for (const it of requests) {
      if (it.participant === this.me) this.#ask({ kind: "role", ...it });
    }
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
        await this.#sendAll();
        await this.peer?.negotiate();
        await this.#announceAll();
      }
      this.#changed();
    };
    return (this.#reviewing = this.#reviewing.catch(() => {}).then(review));
  }

  async #connect() {
    const offer = (sdp, sources) => this.#signalling.request("transport.offer", { sdp, sources });
    const peer = new Peer(offer, this.#codec);
    this.peer = peer;
    peer.addEventListener("state", () => this.#changed());
    peer.addEventListener("lost", () => this.#rejoin("The connection to sfud is lost. Rejoining…"));
    await this.#sendAll();
    peer.addSlots(this.#others().length + FIRST_SLOTS);
    await peer.negotiate();
    const refused = [...peer.published.values()].find((it) => it.refused)?.refused;
    if (refused) this.#problem(`sfud does not take your media (${refused}).`, false);
    await this.#announceAll();
  }

  #disconnect() {
    this.peer?.close();
    this.peer = null;
    this.roomState = new RoomState(null, {});
    this.streams = new Map();
    this.#changed();
  }

  /** The WebSocket is back: the participant is still in the room, or has to join again. */
  async #resume() {
    if (this.state !== "reconnecting" || !this.#key) return;
    try {
      const { room, state } = await this.#signalling.request("resume", { key: this.#key });
      this.#admitted = state === "joined";
      this.#picture(room);
      this.#hasMissed = true;
      this.#set(state);
      this.#problem(null);
      await this.#review();
      await this.#follow();
      if (this.#admitted) this.#run(this.#askAgain());
    } catch (error) {
      if (!PASSING.has(error.reason)) await this.#rejoin();
    }
  }

  /** Starts over, as another participant of the same name. */
  async #rejoin(message) {
    if (this.#rejoining) return;
    this.#rejoining = true;
    if (message) this.#problem(message, true);
    this.#formerKey = this.#key ?? this.#formerKey;
    this.#key = null;
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
    if (!["awaited", "joined", "reconnecting"].includes(this.state)) return;
    this.#set("reconnecting");
    this.#problem("The connection to the signalling server is lost. Reconnecting…", true);
  }

  #end(message) {
    this.#set("left");
    this.#disconnect();
    this.#problem(message, false);
  }

  // ---- Messages of the server

  #take(message) {
    if (this.state === "idle" || this.state === "left") return;
    if (message.type === "status" && this.state === "joining") return; // `join` itself reports it
    switch (message.type) {
      case "event":
        this.#event(message.event, message.data);
        break;
      case "room":
        this.#picture(message.room);
        this.#hasMissed = true;
        if (this.state === "awaited" && this.#admitted) this.#run(this.#arrive());
        else this.#follow();
        break;
      case "gone":
        this.#rejoin("sfud was restarted. Rejoining…");
        break;
      case "status":
        if (!message.sfud) {
          this.#problem("sfud is not running, or cannot be reached. Waiting for it…", true);
        } else if (this.state === "joined" || this.state === "awaited") {
          this.#problem(null);
        } else {
          this.#resume();
        }
        break;
    }
  }

  #picture(room) {
    this.roomState.picture(room);
    this.streams = new Map(room.streams.map((it) => [it.stream, it]));
    this.#changed();
  }

  #event(event, data) {
    const isMine = data.participant === this.me;
    this.roomState.event(event, data);
    switch (event) {
      case "participant.approved":
        if (isMine) this.#admitted = true; // a snapshot of the room follows
        break;
      case "participant.denied":
        if (isMine) return this.#end(`A moderator did not let you in${because(data)}.`);
        break;
      case "participant.left":
        if (isMine) return this.#end(`${ENDINGS[data.reason] ?? ENDINGS.dropped}${because(data)}.`);
        break;
      case "participant.changed":
        if (isMine) this.name = data.participantInfo.name;
        break;
      case "participant.connection":
        if (isMine && data.connection === "disconnected" && this.roomState.hasTransport) {
          return void this.#rejoin("The connection to sfud was lost. Rejoining…");
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
        if (data.state === "ready") this.#run(this.#listen());
        if (data.state === "ended") this.#run(this.#review());
        break;
      case "role.changeRequested":
        if (isMine) this.#ask({ kind: "role", ...data });
        break;
      case "role.changeDeclined":
        if (!isMine) this.#tell(`${this.roomState.nameOf(data.participant)} would rather not be ${data.role}.`);
        break;
      case "role.requestExpired":
        if (data.requester === this.me && data.reason === "timeout") {
          this.#tell(`${this.roomState.nameOf(data.participant)} did not answer.`);
        }
        break;
      case "floor.denied":
        if (isMine) this.#tell("A moderator did not give you the floor.");
        break;
      case "message.received":
        this.#hear(data);
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
        return this.#changed();
      case "stream.layersWanted":
        if (isMine) this.#run(this.#sendWanted(data));
        break;
      case "stream.destroyed":
        this.streams.delete(data.stream);
        this.#slots?.ended(data.stream);
        break;
      case "room.closed":
        return this.#end(`${ENDINGS["room-closed"]}${because(data)}.`);
    }
    this.#changed();
    this.#follow();
  }

  #hear({ topic, message, payload, from }) {
    if (payload?.receiverId !== this.me || !this.participants.has(from)) return;
    if (topic === INVITATION) this.#ask({ kind: "stage", by: from });
    if (topic === ANSWER && message === "DECLINED") {
      this.#tell(`${this.roomState.nameOf(from)} would rather not come on stage.`);
    }
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
          if (!PASSING.has(error.reason) && this.state !== "left") {
            this.#problem(`Streams: ${error.message}`, false);
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
    const talkers = this.layout === "stage" ? this.roomState.settings.maxActiveTalkers : 0;
    if (!(await this.#slots.settle(this.#others(), talkers))) {
      this.#problem("There are more people here than this page can show.", false);
    }
    this.#changed();
  }

  // ---- Sending

  async #sendAll() {
    for (const [kind, label] of [["audio", "microphone"], ["video", "camera"]]) {
      if (this.local[kind] && this.roomState.mayOffer(kind)) await this.#sendDevice(kind);
      else await this.peer.send(label, null);
    }
    if (this.screen && !this.roomState.mayOffer("screen")) {
      for (const track of [this.screen.video, this.screen.audio]) track?.stop();
      this.screen = null;
    }
    await this.#sendScreen();
  }

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

  /** Encodes and sends only the layers that are watched. */
  async #sendWanted({ stream, layers }) {
    const label = this.streams.get(stream)?.source === "screen" ? "screen" : "camera";
    await this.peer?.setLayers(label, layers);
  }

  /** Requests no larger layer than a stream's tile can show; sent again only when it changes. */
  async prefer(stream, width, height) {
    if (this.state !== "joined" || !this.arriving(stream)) return;
    await this.#slots.prefer(stream, width, height);
  }

  /** Why a stream is received as it is: from sfud's `subscription.explain`. */
  async explain(stream) {
    const subscription = this.#slots?.subscription(stream);
    return subscription ? this.request("subscription.explain", { subscription }) : null;
  }

  async #announceAll() {
    for (const kind of ["audio", "video"]) {
      if (this.local[kind]?.enabled === false) await this.#announce(kind);
    }
  }

  async #announce(kind) {
    const label = kind === "video" ? "camera" : "microphone";
    const own = [...this.streams.values()].find(
      (it) => it.participant === this.me && it.source !== "screen",
    );
    const stream = this.peer?.published.get(label)?.stream ?? own?.stream;
    if (!this.streams.has(stream)) return; // withheld: `stream.created` reports its start
    await this.#signalling.request("stream.update", { stream, [kind]: this.local[kind].enabled });
  }

  #set(state) {
    this.state = state;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  #ask(question) {
    this.dispatchEvent(new CustomEvent("asked", { detail: question }));
  }

  #tell(message) {
    this.dispatchEvent(new CustomEvent("told", { detail: { message } }));
  }

  /** Runs a task in the background and reports its failure. */
  #run(task) {
    task.catch((error) => {
      if (!PASSING.has(error.reason) && this.state !== "left") this.#problem(error.message, false);
    });
  }

  #problem(message, waiting) {
    this.dispatchEvent(new CustomEvent("problem", { detail: message && { message, waiting } }));
  }
}
