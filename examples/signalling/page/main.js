// The page: puts the call, its display and its controls together. The call itself is clients/js.
//
// For trying out and for tests, in the address: ?room=…&name=… fill the form, &auto=1 joins at
// once, &audio=0 and &video=0 do without a device, &codec=vp9 prefers a video codec, &size=640x360
// asks the camera for a size. &mode=lecture (group, single_host, single_host_audio_only) and &knock=1
// configure a moderator's new room, &role=viewer (participant, guest) is the role, &people=1 opens
// the panel, &layout=stage shows the talkers, &page=4 has at most four tiles on a page. The fragment
// (#…) is an invitation. `window.sfudDemo` exposes the state (trial.js).

import { announce, wordsFor } from "./announce.js";
import { Asker } from "./ask.js";
import { lastProblem, remember, report, tell } from "./banner.js";
import { Chat } from "./chat.js";
import { Call, Signalling } from "./client/index.js";
import { Devices } from "./devices.js";
import { noteServers, withWaysOn } from "./elsewhere.js";
import { copyLink } from "./link.js";
import { invitation, forgetInvitation } from "./invitation.js";
import { explain, fillLobby, needsDevices, setJoinError, wish } from "./lobby.js";
import { Meter } from "./meter.js";
import { isOn, models, streamOf, wantedFor } from "./models.js";
import { moderate, putQuestion } from "./moderation.js";
import { MOST_ON_PAGE, Pages, tilesFor } from "./pages.js";
import { rememberNames } from "./names.js";
import { People } from "./people.js";
import { toggleFloat } from "./pip.js";
import { Questions } from "./questions.js";
import { Settings } from "./settings.js";
import { onShortcut } from "./shortcuts.js";
import { Signals } from "./signal.js";
import { Sounds } from "./sounds.js";
import { showStanding } from "./standing.js";
import { overlay } from "./stats.js";
import { kept, keep, keepForTab, keptForTab } from "./storage.js";
import { Tiles } from "./tiles.js";
import { expose } from "./trial.js";

const STATISTICS_MILLISECONDS = 1000;
const SIGNAL_MILLISECONDS = 2000;
const SOURCES = { audio: "microphone", video: "camera" };

const byID = (id) => document.getElementById(id);
const parameters = new URLSearchParams(location.search);
const buttons = (action) => document.querySelectorAll(`[data-do="${action}"]`);
const press = (action, isOn) => {
  for (const button of buttons(action)) button.setAttribute("aria-pressed", String(isOn));
};

const address = new URL("ws", location.href.replace(/^http/, "ws"));
const signalling = new Signalling(() => new WebSocket(address));
const size = /^(\d{2,4})x(\d{2,4})$/.exec(parameters.get("size") ?? "");
const devices = new Devices(size && { width: Number(size[1]), height: Number(size[2]) });
const tiles = new Tiles(byID("stage"), useTool, show);
const sounds = new Sounds();
const pages = new Pages();
const signals = new Signals();
const chat = new Chat();
const settings = new Settings(devices, (speaker) => sounds.use(speaker));
const lobbyMeter = new Meter(byID("lobby-level"));
const people = new People(byID("people-list"), (type, fields) =>
  moderate(call, { asker, questions }, type, fields));
const asker = new Asker(byID("question"));
let call = null;
let questions = null;
let showStatistics = false;
let panel = parameters.get("people") === "1" ? "people" : null; // people · chat
let layout = parameters.get("layout") === "stage" ? "stage" : "grid";
let pinned = null; // the tile that we want large
let watched = null; // what the call was asked to receive
let sfudIsUp = null;
let invitedOnly = false; // whether joining needs an invitation
let waitsForSFU = false; // with auto=1: joins as soon as there is an sfud

const isInCall = () => call?.state === "joined" || call?.state === "reconnecting";

// ---- Joining

async function openLobby() {
  fillLobby();
  if (needsDevices()) await devices.take(wantedDevices());
  if (parameters.get("auto") === "1") await join();
  else (byID("name").value ? byID("join").querySelector("[type=submit]") : byID("name")).focus();
}

function wantedDevices() {
  return ["audio", "video"].filter((kind) => parameters.get(kind) !== "0");
}

async function join() {
  if (call && call.state !== "left") return;
  const { room, name, ...wished } = wish();
  keep("name", name);
  setJoinError(null);
  waitsForSFU = false;
  call?.removeEventListener("change", show);
  const codec = parameters.get("codec")?.toLowerCase() ?? null;
  const [key, token] = [keptForTab(`key:${room}`), invitation()?.token ?? null];
  const view = layout === "stage" ? "talkers" : "all";
  call = new Call({ signalling, room, name, codec, key, token, view, ...wished });
  watched = null;
  pinned = null;
  call.addEventListener("change", show);
  call.addEventListener("problem", ({ detail }) => report(withWaysOn(detail, { room, name: call.name })));
  call.addEventListener("event", ({ detail: { event, data } }) => {
    const words = wordsFor(event, data, call.me);
    if (words) announce(words);
  });
  questions = new Questions(call, { ask: answer, tell });
  chat.attach(call);
  show();
  try {
    await call.connect(devices);
    const here = new URL(location.href);
    here.searchParams.set("room", room);
    history.replaceState(null, "", here);
  } catch (error) {
    console.error(error);
    failJoin(explain(error));
    if (["bad-invitation", "invitation-expired"].includes(error.reason)) forgetInvitation();
    waitsForSFU = parameters.get("auto") === "1" && error.reason === "sfud-not-running";
  }
  show();
}

function failJoin(message) {
  remember(message);
  setJoinError(message);
}

/** Shows a moderator's question to us, and sends the answer. */
async function answer({ kind, role, by, expires, request }) {
  const asked = call;
  const given = await putQuestion(asked, asker, { kind, role, by, expires });
  if (!given || asked !== call || call.state !== "joined") return;
  try {
    const missing = wantedDevices().filter((it) => !devices[it]);
    if (given.publishes && missing.length) await devices.take(missing);
    await questions.answer({ kind, by, request }, given.accepts);
  } catch (error) {
    report({ message: `Not done: ${error.message}.` });
  }
}

// ---- Display

function show() {
  const state = call?.state ?? "idle";
  const inCall = isInCall();
  if (inCall && call.key !== keptForTab(`key:${call.room}`)) keepForTab(`key:${call.room}`, call.key);
  byID("waiting-room").textContent = call?.room ?? "";
  const view = inCall ? "call" : state === "awaited" ? "waiting" : "lobby";
  if (document.body.dataset.view !== view) turnTo(view);
  const submit = byID("join").querySelector("[type=submit]");
  submit.disabled = state === "joining";
  submit.textContent = state === "joining" ? "Joining…" : state === "left" ? "Join again" : "Join";
  for (const kind of ["audio", "video"]) press(kind, devices.isOn(kind));
  byID("preview").hidden = !devices.isOn("video");
  lobbyMeter.show(inCall ? null : devices.audio);
  press("screen", Boolean(call?.screen));
  for (const button of buttons("screen")) button.disabled = !navigator.mediaDevices?.getDisplayMedia;
  press("stats", showStatistics);
  press("layout", layout === "stage");
  document.title = inCall ? `${call.room} · sfud demo` : "sfud demo";
  if (state === "left" || state === "idle") asker.dismiss();
  if (!inCall) {
    signals.close();
    sounds.show([]);
    return void tiles.show([]);
  }
  rememberNames(call.participants);
  byID("room-name").textContent = call.room;
  const count = call.participants.size;
  byID("head-count").textContent = count === 1 ? "Only you so far" : `${count} people`;
  showStanding(call.roomState, panel === "people", layout, invitedOnly);
  if (panel === "people") people.show(call.roomState, (id, kind) => isOn(streamOf(call, id)?.[kind]));
  chat.show(panel === "chat");
  const others = [...call.streams.values()].filter((it) => it.participant !== call.me);
  sounds.show(others.map((it) => call.tracks(it.stream).audio).filter(Boolean));
  showTiles();
}

/** Shows another part of the page; who sees no screen hears where it is. */
function turnTo(view) {
  document.body.dataset.view = view;
  for (const id of ["lobby", "waiting", "call"]) byID(id).hidden = id !== view;
  byID(view).querySelector(view === "lobby" ? "[type=submit]" : "h1").focus();
}

function showTiles() {
  const { large, people } = models(call, { layout, devices, pinned });
  const most = Number(parameters.get("page")) || (large.length ? MOST_ON_PAGE
    : tilesFor(byID("watching").clientWidth, byID("watching").clientHeight));
  const page = pages.cut(people, most);
  const shown = [...large, ...page];
  byID("pager").hidden = pages.count === 1;
  byID("page-text").textContent = pages.text;
  for (const [action, by] of [["back", -1], ["on", 1]]) {
    for (const button of buttons(action)) button.setAttribute("aria-disabled", String(!pages.has(by)));
  }
  tiles.show(shown);
  for (const { element, model } of tiles.all) {
    if (!model.self) call.watchSize(element, model.stream?.video ? model.stream.stream : null);
  }
  const wanted = wantedFor({ layout, shown, isPaged: pages.count > 1 });
  const signature = JSON.stringify(wanted);
  if (signature === watched || call.state !== "joined") return;
  watched = signature;
  call.set(wanted.streams, { view: wanted.view }).catch((error) => report({ message: error.message }));
}

// ---- Controls

const actions = {
  audio: () => toggle("audio"),
  video: () => toggle("video"),
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
  layout() {
    layout = layout === "stage" ? "grid" : "stage";
    show();
  },
  people: () => togglePanel("people"),
  chat: () => togglePanel("chat"),
  settings: () => settings.open(),
  stats() {
    showStatistics = !showStatistics;
    if (!showStatistics) for (const tile of tiles.all) tile.overlay([]);
    show();
  },
  back: () => turn(-1),
  on: () => turn(1),
  async leave() {
    await call?.close();
    report(null);
  },
};

async function toggle(kind) {
  const [device, source] = [devices[kind], SOURCES[kind]];
  if (device?.readyState !== "live") await devices.take([kind]);
  else if (isInCall()) await (device.enabled ? call.mute(source) : call.unmute(source));
  else device.enabled = !device.enabled;
  show();
}

function togglePanel(name) {
  panel = panel === name ? null : name;
  show();
  if (panel === "people") byID("people").focus();
  else if (!panel) document.querySelector(`nav [data-do=${name}]`).focus();
}

function turn(by) {
  if (!pages.turn(by)) return;
  show();
  announce(pages.text);
}

/** A button on a tile. */
async function useTool(tool, tile) {
  switch (tool) {
    case "pin":
      pinned = pinned === tile.model.key ? null : tile.model.key;
      announce(pinned ? `${tile.label} is large now` : `${tile.label} is not large any more`);
      return show();
    case "float":
      return toggleFloat(tile.video).catch((error) => report({ message: error.message }));
    case "full":
      return document.fullscreenElement
        ? document.exitFullscreen() : tile.element.requestFullscreen?.();
    case "why":
      return signals.open(tile);
  }
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
  button.addEventListener("click", () => {
    if (button.closest("#more")) byID("more").hidePopover();
    act(button.dataset.do);
  });
}

onShortcut((action) => {
  if (action === "close") return void (panel && act(panel));
  if (!isInCall() && !["audio", "video", "settings"].includes(action)) return;
  act(action);
});

devices.addEventListener("change", async ({ detail: { kind, track } }) => {
  if (kind === "video") {
    byID("preview").srcObject = devices.video && new MediaStream([devices.video]);
    byID("preview").play().catch(() => {});
  }
  show();
  if (!track || !isInCall()) return;
  await call.publish(SOURCES[kind], track).catch((error) => report({ message: error.message }));
});
devices.addEventListener("problem", ({ detail }) => report({ message: detail }));

document.addEventListener("play-blocked", () => {
  const run = () => {
    tiles.play();
    sounds.play();
    report(null);
  };
  report({ message: "The browser holds the sound back.", actions: [{ label: "Play", run }] });
});

byID("join").addEventListener("submit", (event) => {
  event.preventDefault();
  join();
});
byID("copy").addEventListener("click", () => copyLink(call, byID("copy")));

signalling.addEventListener("message", ({ detail }) => {
  if (detail.type !== "status") return;
  invitedOnly = detail.invited;
  noteServers(detail.elsewhere);
  if (detail.sfud === sfudIsUp) return;
  sfudIsUp = detail.sfud;
  if (call && call.state !== "left") return; // the call reports it itself
  failJoin(sfudIsUp ? null : explain({ reason: "sfud-not-running" }));
  if (sfudIsUp && waitsForSFU) join();
});

setInterval(async () => {
  const sample = showStatistics && await call?.statistics({ explain: true });
  if (sample) for (const tile of tiles.all) tile.overlay(overlay(sample, tile.model));
}, STATISTICS_MILLISECONDS);
setInterval(() => {
  if (call?.state === "joined") signals.refresh(call, tiles.all);
}, SIGNAL_MILLISECONDS);

expose({
  act, join, sounds, pages, tiles,
  call: () => call, error: lastProblem, layout: () => layout,
});

openLobby();
