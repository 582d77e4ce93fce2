// The page: lobby, stage, controls. The call itself is clients/js.
//
// For trying out and for tests, in the address: ?room=…&name=… fill the form, &auto=1 joins at
// once, &audio=0 and &video=0 do without a device, &codec=vp9 prefers a video codec, &size=640x360
// asks the camera for a size. &mode=lecture (group, single_host, single_host_audio_only) and &knock=1
// configure a moderator's new room, &role=viewer (participant, guest) is the role, &people=1 opens
// the panel, &layout=stage shows the talkers. The fragment (#…) is an invitation.
// `window.sfudDemo` exposes the state.

import { Asker } from "./ask.js";
import { Call, Signalling } from "./client/index.js";
import { invitation, forgetInvitation } from "./invitation.js";
import { openDevices } from "./media.js";
import { heldBack } from "./notices.js";
import { People } from "./people.js";
import { Questions } from "./questions.js";
import { showStanding } from "./standing.js";
import { explainedLines, receivedLines, sentLines } from "./stats.js";
import { kept, keep, keepForTab, keptForTab } from "./storage.js";
import { Tiles } from "./tiles.js";

const STATISTICS_MILLISECONDS = 1000;
/** The call's view for each layout. */
const VIEWS = { grid: "all", stage: "talkers" };
const NEWS_MILLISECONDS = 6000;

const byID = (id) => document.getElementById(id);
const parameters = new URLSearchParams(location.search);
const buttons = (action) => document.querySelectorAll(`[data-do="${action}"]`);

const address = new URL("ws", location.href.replace(/^http/, "ws"));
const signalling = new Signalling(() => new WebSocket(address));
const tiles = new Tiles(byID("stage"));
const people = new People(byID("people-list"), moderate);
const asker = new Asker(byID("question"));
const devices = { audio: null, video: null };
let call = null;
let questions = null;
let lastError = null;
let showStatistics = false;
let showPeople = parameters.get("people") === "1";
let layout = parameters.get("layout") === "stage" ? "stage" : "grid";
let newsTimer = null;
let sfudIsUp = null;
let invitedOnly = false; // whether joining needs an invitation
let waitsForSFU = false; // with auto=1: joins as soon as there is an sfud

// ---- Lobby

async function openLobby() {
  byID("room").value = parameters.get("room") ?? invitation()?.room ?? "lobby";
  byID("name").value = parameters.get("name") ?? invitation()?.name ?? kept("name");
  for (const id of ["role", "mode"]) choose(byID(id), parameters.get(id));
  byID("knock").checked = parameters.get("knock") === "1";
  byID("room-options").hidden = invitation()?.role !== "moderator";
  byID("options").open = ["role", "mode", "knock"].some((it) => parameters.has(it));
  // Viewers are not asked for devices before they need them.
  if (byID("role").value === "participant") await takeDevices(wantedDevices());
  if (parameters.get("auto") === "1") await join();
  else (byID("name").value ? byID("join").querySelector("[type=submit]") : byID("name")).focus();
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

function wantedDevices() {
  return ["audio", "video"].filter((kind) => parameters.get(kind) !== "0");
}

async function takeDevices(kinds) {
  const wish = { audio: kinds.includes("audio"), video: kinds.includes("video") };
  const size = /^(\d{2,4})x(\d{2,4})$/.exec(parameters.get("size") ?? "");
  if (size) wish.size = { width: Number(size[1]), height: Number(size[2]) };
  const { audio, video, problem } = await openDevices(wish);
  for (const [kind, track] of [["audio", audio], ["video", video]]) {
    if (!track) continue;
    devices[kind] = track;
    track.addEventListener("ended", () => {
      report({ message: `The ${kind === "audio" ? "microphone" : "camera"} is gone.` });
      show();
    });
  }
  if (problem) report({ message: problem });
  byID("preview").srcObject = devices.video && new MediaStream([devices.video]);
  byID("preview").play().catch(() => {});
  show();
}

async function join() {
  if (call && call.state !== "left") return;
  const [room, name] = [byID("room").value.trim(), byID("name").value.trim()];
  keep("name", name);
  setJoinError(null);
  waitsForSFU = false;
  call?.removeEventListener("change", show);
  const codec = parameters.get("codec")?.toLowerCase() ?? null;
  const [key, token] = [keptForTab(`key:${room}`), invitation()?.token ?? null];
  call = new Call({ signalling, room, name, codec, key, token, view: VIEWS[layout], ...wish() });
  call.addEventListener("change", show);
  call.addEventListener("problem", ({ detail }) => report(detail));
  const tell = (message) => report({ message, isNews: true });
  questions = new Questions(call, { ask: question, tell });
  show();
  try {
    await call.connect(devices);
    const here = new URL(location.href);
    here.searchParams.set("room", room);
    history.replaceState(null, "", here);
  } catch (error) {
    console.error(error);
    setJoinError(explain(error));
    if (["bad-invitation", "invitation-expired"].includes(error.reason)) forgetInvitation();
    waitsForSFU = parameters.get("auto") === "1" && error.reason === "sfud-not-running";
  }
  show();
}

/** The lobby's selected options. */
function wish() {
  const role = byID("role").value;
  return {
    role: role === "viewer" ? "viewer" : "participant",
    mode: role === "guest" ? "SIGNALLING_ONLY" : "SEND_AND_RECV",
    settings: { mode: byID("mode").value, knock: byID("knock").checked },
  };
}

function explain(error) {
  switch (error.reason) {
    case "sfud-not-running":
      return "sfud is not running, or the signalling server cannot reach it. Start it and join again.";
    case "limit-reached":
      return "This room is full.";
    case "invitation-needed":
      return "You need an invitation: ask a moderator of this room for a link.";
    case "bad-invitation":
    case "invitation-expired":
      return "Your invitation is no longer good: ask for a new link.";
    case "other-room":
      return "Your invitation is for another room.";
    case "no-such-room":
      return "This room is not open yet. Join again once a moderator has come.";
    case "room-locked":
      return "This room is locked.";
    case "event-not-open":
    case "event-ended":
      return `Not now: ${error.message}.`;
    case "draining":
      return "The server is being shut down and takes no new rooms.";
    default:
      return error.message;
  }
}

function setJoinError(message) {
  if (message) lastError = message;
  byID("join-error").textContent = message ?? "";
  byID("join-error").hidden = !message;
}

// ---- Display

function show() {
  const state = call?.state ?? "idle";
  const inCall = state === "joined" || state === "reconnecting";
  if (inCall && call.key !== keptForTab(`key:${call.room}`)) keepForTab(`key:${call.room}`, call.key);
  document.body.dataset.view = inCall ? "call" : "lobby";
  byID("waiting").hidden = state !== "awaited";
  byID("waiting-room").textContent = call?.room ?? "";
  byID("lobby").hidden = inCall || state === "awaited";
  byID("call").hidden = !inCall;
  const submit = byID("join").querySelector("[type=submit]");
  submit.disabled = state === "joining";
  submit.textContent = state === "joining" ? "Joining…" : state === "left" ? "Join again" : "Join";
  for (const kind of ["audio", "video"]) {
    const on = devices[kind]?.enabled === true && devices[kind].readyState === "live";
    for (const button of buttons(kind)) button.setAttribute("aria-pressed", String(on));
  }
  byID("preview").hidden = devices.video?.enabled !== true;
  for (const button of buttons("screen")) {
    button.setAttribute("aria-pressed", String(Boolean(call?.screen)));
    button.disabled = !navigator.mediaDevices?.getDisplayMedia;
  }
  for (const button of buttons("stats")) button.setAttribute("aria-pressed", String(showStatistics));
  for (const button of buttons("layout")) button.setAttribute("aria-pressed", String(layout === "stage"));
  if (state === "left" || state === "idle") asker.dismiss();
  if (!inCall) return void tiles.show([]);
  byID("room-name").textContent = call.room;
  const count = call.participants.size;
  byID("head-count").textContent = count === 1 ? "Only you so far" : `${count} people`;
  document.title = `${call.room} · sfud demo`;
  showStanding(call.roomState, showPeople, layout, invitedOnly);
  if (showPeople) people.show(call.roomState, (id, kind) => isOn(streamOf(id)?.[kind]));
  tiles.show(models());
  for (const { element, model } of tiles.all) {
    if (!model.self) call.watchSize(element, model.stream?.video ? model.stream.stream : null);
  }
}

function streamOf(participant) {
  return [...call.streams.values()].find(
    (it) => it.participant === participant && it.source !== "screen",
  );
}

/** The tiles in order: shared screens first, then people, talking or pinned ones in sfud's order.
 *  The grid has everybody, ourselves first and the rest by arrival; the stage has only the people
 *  of the list, the first of them large, and ourselves last. */
function models() {
  const streams = [...call.streams.values()].filter((it) => it.participant !== call.me);
  const screens = streams.filter((it) => it.source === "screen").map((stream) => ({
    ...remote(stream, nameOf(stream.participant)), key: `screen:${stream.stream}`, screen: true,
  }));
  if (call.screen) {
    screens.push({
      key: "screen:own", name: call.name, self: true, screen: true, videoTrack: call.screen.video,
      audioTrack: null, audioOn: true, videoOn: true, connection: "connected",
    });
  }
  const self = {
    key: "self", name: call.name, self: true, screen: false,
    videoTrack: devices.video, audioTrack: null, connection: "connected",
    audioOn: devices.audio?.enabled === true && call.roomState.mayOffer("audio")
      && !call.roomState.isMuted("audio"),
    videoOn: devices.video?.enabled === true && call.roomState.mayOffer("video"),
    held: heldBack(call.roomState),
  };
  const { talkers } = call.roomState;
  const place = ({ participant }) => {
    const found = talkers.findIndex((it) => it.participant === participant);
    return found < 0 ? talkers.length : found;
  };
  const others = [...call.participants.values()]
    .filter((it) => it.participant !== call.me)
    .sort((left, right) => place(left) - place(right))
    .map((participant) => {
      const talker = talkers.find((it) => it.participant === participant.participant);
      const stream = streams.find(
        (it) => it.participant === participant.participant && it.source !== "screen",
      );
      const name = nameOf(participant.participant);
      return {
        ...remote(stream, name), key: `participant:${participant.participant}`, screen: false,
        connection: participant.connection, listed: Boolean(talker),
        talking: talker?.talking ?? false, pinned: talker?.pinned ?? false,
      };
    });
  const people = layout === "stage" ? [...others.filter((it) => it.listed), self] : [self, ...others];
  const all = [...screens, ...people];
  if (screens.length || (layout === "stage" && people.length > 1)) all[0].large = true;
  return all;
}

function remote(stream, name) {
  const { audio, video } = stream ? call.tracks(stream.stream) : { audio: null, video: null };
  return {
    name, self: false, stream, connection: "connected", audioTrack: audio, videoTrack: video,
    audioOn: isOn(stream?.audio), videoOn: isOn(stream?.video),
  };
}

function isOn(media) {
  return Boolean(media) && media.enabled !== false;
}

function nameOf(participant) {
  return call.participants.get(participant)?.name || participant;
}

/** A banner with `{message, waiting, isNews, action}`, or none. */
function report(problem) {
  clearTimeout(newsTimer);
  if (problem?.isNews) newsTimer = setTimeout(() => report(null), NEWS_MILLISECONDS);
  else if (problem) lastError = problem.message;
  byID("banner").hidden = !problem;
  if (!problem) return;
  byID("banner-text").textContent = problem.message;
  byID("banner").classList.toggle("is-waiting", Boolean(problem.waiting));
  byID("banner").classList.toggle("is-news", Boolean(problem.isNews));
  byID("banner-action").hidden = !problem.action;
  byID("banner-action").textContent = problem.action?.label ?? "";
  byID("banner-action").onclick = problem.action?.run ?? null;
}

// ---- Controls

const actions = {
  async audio() {
    await toggle("audio");
  },
  async video() {
    await toggle("video");
  },
  async screen() {
    if (call?.state !== "joined") return;
    if (call.screen) return call.unpublish("screen");
    await call.open("screen").catch((error) => {
      if (error.reason !== "not-allowed") throw error; // else the browser's dialog was closed
    });
  },
  async hand() {
    const requests = { none: "floor.request", raised: "floor.cancel", held: "floor.finish" };
    const request = requests[call?.roomState.floor];
    if (request) await call.request(request);
  },
  async layout() {
    layout = layout === "stage" ? "grid" : "stage";
    show();
    await call?.show(VIEWS[layout]);
  },
  people() {
    showPeople = !showPeople;
    show();
    if (showPeople) byID("people").focus();
    else document.querySelector("nav [data-do=people]").focus();
  },
  stats() {
    showStatistics = !showStatistics;
    if (!showStatistics) for (const tile of tiles.all) tile.overlay([]);
    show();
  },
  async leave() {
    await call?.close();
    report(null);
    byID("join").querySelector("[type=submit]").focus();
  },
};

async function toggle(kind) {
  const device = devices[kind];
  const source = kind === "audio" ? "microphone" : "camera";
  const inCall = call?.state === "joined" || call?.state === "reconnecting";
  if (!device || device.readyState === "ended") {
    await takeDevices([kind]);
    if (inCall && devices[kind] && devices[kind] !== device) await call.publish(source, devices[kind]);
  } else if (inCall) {
    await (device.enabled ? call.mute(source) : call.unmute(source));
  } else {
    device.enabled = !device.enabled;
  }
  show();
}

/** Performs an action of the panel. */
async function moderate(type, fields) {
  try {
    if (type === "invite") {
      await questions.invite(fields.participant);
      report({ message: "The invitation is on its way.", isNews: true });
    } else if (type === "participant.update") {
      const name = await asker.ask({
        key: "name", title: "Your name?", text: "Everybody in the room sees it.",
        field: { label: "Name", placeholder: call.name }, yes: "Rename", no: "Keep it",
      });
      if (name) await call.request(type, { ...fields, name });
    } else if (type === "streaming.start") {
      const url = await asker.ask({
        key: "stream", title: "Stream live?", text: "Everybody sees that the room is streamed.",
        field: { label: "RTMP address with its key", placeholder: "rtmp://server/app/key" },
        yes: "Stream", no: "Not now",
      });
      if (url) await call.request(type, { ...fields, url });
    } else if (type !== "room.close" || await asker.ask({
      key: "close", title: "Close the room?", text: "Everybody is disconnected.",
      yes: "Close it", no: "Leave it open", danger: true,
    })) {
      const { results = [] } = await call.request(type, fields);
      const failed = results.find((it) => it.error);
      if (failed) throw new Error(failed.error.message);
    }
  } catch (error) {
    console.error(error);
    report({ message: `Not done: ${error.message}.` });
  }
}

/** Shows a moderator's question, and sends the answer. */
async function question({ kind, role, by, expires, request }) {
  const asked = call;
  const who = asked.roomState.nameOf(by);
  const accepts = await asker.ask(kind === "role"
    ? {
      key: kind, title: `Become ${role}?`, text: `${who ?? "The server"} asks you to be “${role}”.`,
      yes: "Accept", no: "Decline", expires,
    }
    : {
      key: kind, title: "Come on stage?", text: `${who} invites you: the others will see and hear you.`,
      yes: "Come on stage", no: "Decline",
    });
  if (accepts === null || asked !== call || call.state !== "joined") return;
  try {
    const publishes = kind === "stage"
      || call.roomState.settings.roles.find((it) => it.name === role)?.publish?.audio;
    const missing = wantedDevices().filter((it) => !devices[it]);
    if (accepts && publishes && missing.length) {
      await takeDevices(missing);
      await publishDevices(missing);
    }
    await questions.answer({ kind, by, request }, accepts);
  } catch (error) {
    report({ message: `Not done: ${error.message}.` });
  }
}

/** Publishes what was found of these kinds, now or as soon as the role allows it. */
async function publishDevices(kinds) {
  if (kinds.includes("audio") && devices.audio) await call.publish("microphone", devices.audio);
  if (kinds.includes("video") && devices.video) await call.publish("camera", devices.video);
}

async function act(action) {
  try {
    await actions[action]();
  } catch (error) {
    console.error(error);
    report({ message: error.message });
  }
}

for (const button of document.querySelectorAll("[data-do]")) {
  button.addEventListener("click", () => act(button.dataset.do));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input, select") || byID("question").open) return;
  if (event.key === "Escape" && showPeople) return void act("people");
  const action = {
    m: "audio", v: "video", s: "screen", t: "layout", i: "stats", p: "people", h: "hand", L: "leave",
  }[event.key];
  if (!action || (byID("call").hidden && action !== "audio" && action !== "video")) return;
  event.preventDefault();
  act(action);
});

document.addEventListener("play-blocked", () => {
  const run = () => {
    tiles.play();
    report(null);
  };
  report({ message: "The browser holds the sound back.", action: { label: "Play", run } });
});

byID("join").addEventListener("submit", (event) => {
  event.preventDefault();
  join();
});
byID("banner-close").addEventListener("click", () => report(null));
/** The room's address for others, with an invitation where they need one. */
async function inviteLink() {
  const address = new URL(location.origin + location.pathname);
  address.searchParams.set("room", call.room);
  const { token } = await call.request("inviteLink");
  if (token) address.hash = token;
  return address.href;
}

byID("copy").addEventListener("click", async () => {
  const label = byID("copy").querySelector("span");
  const link = await inviteLink().catch((error) => report({ message: `Not done: ${error.message}.` }));
  if (!link) return;
  try {
    await navigator.clipboard.writeText(link);
    label.textContent = "Copied";
  } catch {
    label.textContent = link;
  }
  setTimeout(() => (label.textContent = "Copy link"), 2500);
});

signalling.addEventListener("message", ({ detail }) => {
  if (detail.type !== "status") return;
  invitedOnly = detail.invited;
  if (detail.sfud === sfudIsUp) return;
  sfudIsUp = detail.sfud;
  if (call && call.state !== "left") return; // the call reports it itself
  setJoinError(sfudIsUp ? null : explain({ reason: "sfud-not-running" }));
  if (sfudIsUp && waitsForSFU) join();
});

// ---- Statistics

setInterval(async () => {
  if (!showStatistics) return;
  const sample = await call?.statistics({ explain: true });
  if (!sample) return;
  for (const tile of tiles.all) {
    const { self, screen, stream } = tile.model;
    if (self) {
      const labels = screen ? ["screen", "screen-audio"] : ["camera", "microphone"];
      const sent = sample.sent.filter((it) => labels.includes(it.label));
      tile.overlay(sentLines(sent, sample.roundTrip));
    } else {
      const of = (kind) => sample.received.find((it) => it.kind === kind && it.stream === stream?.stream);
      const video = of("video");
      const lines = stream ? receivedLines(video, of("audio")) : [];
      tile.overlay([...lines, ...(video?.explanation ? explainedLines(video.explanation) : [])]);
    }
  }
}, STATISTICS_MILLISECONDS);

window.sfudDemo = {
  /** idle · joining · awaited · joined · reconnecting · left */
  get state() { return call?.state ?? "idle"; },
  get error() { return lastError; },
  get layout() { return layout; },
  get room() { return call?.room ?? null; },
  get participant() { return call?.me ?? null; },
  get peerConnection() { return call?.peer?.pc ?? null; },
  get roomState() { return call?.roomState ?? null; },
  get streams() { return call ? [...call.streams.values()] : []; },
  tiles: () => tiles.all.map(({ model, video, element }) => ({
    key: model.key, name: model.name, participant: model.stream?.participant ?? null,
    place: Number(element.style.order), large: model.large ?? false,
    screen: model.screen, talking: element.classList.contains("is-speaking"),
    pinned: element.querySelector(".tile-pinned").checkVisibility(),
    audioOn: model.audioOn, videoOn: model.videoOn,
    connection: model.connection, width: video.videoWidth, height: video.videoHeight,
    time: video.currentTime,
  })),
  stats: () => call?.statistics() ?? null,
  act,
  join,
  inviteLink,
  request: (type, fields) => call.request(type, fields),
  restartICE: () => call?.restartIce(),
};

openLobby();
