// The page: asks for the picture once a second, and draws it.

import { showNodes, showRooms } from "./cards.js";
import { draw } from "./diagram.js";
import { html, keyed, say, set } from "./elements.js";

const MILLISECONDS = 1000;
const COLORS = 6;
const NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Grace", "Hugo", "Ida", "Jon"];

const byID = (id) => document.getElementById(id);
let latest = null;
let problem = null; // of a button; it goes with the next one

// ---- What the next tab is to be

const fresh = () => {
  const taken = new Set(latest?.rooms.flatMap((it) => it.people.map(({ name }) => name)) ?? []);
  return NAMES.find((it) => !taken.has(it)) ?? `Guest ${taken.size + 1}`;
};

const wish = () => ({
  room: byID("room").checkValidity() ? byID("room").value : "demo",
  name: byID("name").value || fresh(),
});

/** Suggests another name, until somebody has typed one. */
function suggest() {
  if (byID("name").dataset.typed !== "yes" && document.activeElement !== byID("name")) {
    byID("name").value = fresh();
  }
}

byID("name").addEventListener("input", () => {
  byID("name").dataset.typed = byID("name").value ? "yes" : "";
  show();
});
byID("room").addEventListener("input", () => show());
byID("wish").addEventListener("submit", (event) => event.preventDefault());

// ---- Buttons

async function act(button, name, action) {
  button.disabled = true;
  report(null);
  try {
    const reply = await fetch(`${name}/${action}`, { method: "POST" });
    if (!reply.ok) report(await reply.text());
  } catch {
    report("The launcher cannot be reached.");
  }
  button.disabled = false;
  await look();
}

function report(message) {
  problem = message;
  say(byID("banner-text"), message ?? "");
  byID("banner").hidden = !message;
}

// ---- Drawing

/** A color for each room, the same as long as the page is open. */
const colors = new Map();
function color(rooms) {
  for (const { room } of rooms) {
    if (!colors.has(room)) colors.set(room, `var(--room-${(colors.size % COLORS) + 1})`);
  }
  return colors;
}

function show() {
  if (!latest) return;
  suggest();
  draw(latest, color(latest.rooms));
  showNodes(latest, { wish, act });
  showRooms(latest, colors);
  showNATS(latest);
  showNews(latest.news);
  say(byID("commands"), commands(latest));
}

function showNATS({ nats, registry }) {
  const action = nats.isRunning ? "stop" : "start";
  keyed(byID("nats-buttons"), [action], {
    key: (it) => it,
    make: (it) => {
      const label = it === "stop" ? "Stop NATS" : "Start NATS";
      const kind = it === "stop" ? "pill bad" : "pill";
      const button = html("button", { type: "button", class: kind }, label);
      button.addEventListener("click", () => act(button, "nats", it));
      return button;
    },
    update() {},
  });
  say(byID("registry"), registry === "away" ? "NATS is away" : "NATS runs");
  set(byID("registry"), { class: registry === "away" ? "sign is-danger" : "sign is-accent" });
}

function showNews(news) {
  keyed(byID("news-list"), [...news].reverse(), {
    key: ({ time, text }) => `${time} ${text}`,
    make: ({ time, text }) => html("li", {},
      html("time", {}, new Date(time * 1000).toLocaleTimeString([], { hour12: false })),
      html("span", {}, text)),
    update() {},
  });
}

function commands({ nodes, sfuctl }) {
  const [first] = nodes.filter((it) => it.isRunning);
  if (!first) return "";
  const room = latest.rooms[0]?.room ?? wish().room;
  return [
    `export SFUD_IPC=${first.socket}`,
    `alias sfuctl=${sfuctl}`,
    "sfuctl nodes",
    `sfuctl room ${room}`,
    `kill -9 ${first.pid}                 # node ${first.name}'s sfud alone`,
    `curl -X POST ${location.origin}/${first.name}/stop`,
    `curl -X POST ${location.origin}/${first.name}/start`,
  ].join("\n");
}

// ---- Asking

let asking = null;
function look() {
  asking ??= ask().finally(() => { asking = null; });
  return asking;
}

async function ask() {
  try {
    latest = await (await fetch("picture")).json();
    if (problem === GONE) report(null);
    show();
  } catch (error) {
    console.error(error);
    report(GONE);
  }
}
const GONE = "The launcher has ended. Start it again: examples/cluster/run";

document.addEventListener("visibilitychange", () => document.hidden || look());
setInterval(() => document.hidden || look(), MILLISECONDS);
look();
