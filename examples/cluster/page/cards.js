// The cards: each node with its figures and buttons, and each room with its people and its tree.

import { html, keyed, rebuilt, say, set } from "./elements.js";
import { counted, isOff, listed, medium, rate, STATES } from "./words.js";

const byID = (id) => document.getElementById(id);
const SIGNS = { up: "is-accent", draining: "is-warm", lost: "is-danger", stopped: "is-danger" };

/** `wish()` returns the room and the name of the next tab; `act(name, action)` does it. */
export function showNodes(picture, { wish, act }) {
  keyed(byID("cards"), picture.nodes, {
    key: (node) => node.name,
    make: (node) => card(node, act),
    update: (element, node) => fill(element, node, picture, wish()),
  });
}

function card({ name }, act) {
  const button = (action, label, kind = "") => {
    const it = html("button", { class: `pill ${kind}`, type: "button", "data-do": action }, label);
    it.setAttribute("aria-label", `${label} node ${name}`);
    if (action === "drain") it.title = "Its people and rooms move to other nodes, unnoticed";
    it.addEventListener("click", () => act(it, name, action));
    return it;
  };
  const link = (label, kind, what) => html("a", {
    class: `pill ${kind}`, target: "_blank", rel: "noopener", "data-join": what,
    "aria-label": `${label} ${name}, in a new tab`,
  }, what === "moderator" ? "as moderator" : `${label} ${name}`);
  return html("article", { class: "node-card", "data-node": name },
    html("div", { class: "title" },
      html("h2", {}, name),
      html("div", { class: "figures" }, html("b"), html("span")),
      html("span", { class: "sign" })),
    html("div", { class: "meter", "aria-hidden": "true" }, html("span")),
    html("div", { class: "row" },
      link("Join at", "good", "participant"), link("Join as moderator at", "", "moderator"),
      html("span", { class: "grow" }),
      button("drain", "Drain"), button("undrain", "Undrain"),
      button("stop", "Stop", "bad"), button("start", "Start")));
}

function fill(element, node, { rooms }, wish) {
  const off = isOff(node);
  const kind = off ? "is-off" : node.state === "draining" ? "is-draining" : "";
  set(element, { class: `node-card ${kind}` });
  const homes = rooms.filter((it) => it.home === node.name).map((it) => it.room);
  const people = rooms.flatMap((it) => it.people)
    .filter((it) => it.node === node.name && it.connection === "connected").length;
  const [head, more] = element.querySelector(".figures").children;
  say(head, off ? `Node ${node.name} does not run`
    : homes.length ? `Home of ${listed(homes.slice(0, 3))}` : "Home of no room");
  say(more, off ? lost(node)
    : `${Math.round(node.load * 100)} % busy · ${counted(people, "person", "people")} connected`);
  const sign = element.querySelector(".sign");
  say(sign, STATES[node.state]);
  set(sign, { class: `sign ${SIGNS[node.state] ?? ""}` });
  element.querySelector(".meter span").style.width = off ? "0" : `${Math.max(1, node.load * 100)}%`;
  for (const link of element.querySelectorAll("[data-join]")) {
    const url = new URL(link.dataset.join === "moderator" ? node.moderator || node.url : node.url);
    for (const [key, value] of Object.entries({ ...wish, auto: 1 })) {
      url.searchParams.set(key, value);
    }
    set(link, { href: url, "aria-disabled": off });
    link.hidden = off;
  }
  const shown = {
    drain: node.state === "up", undrain: node.state === "draining", stop: node.isRunning,
    start: !node.isRunning || !node.servesPage,
  };
  for (const button of element.querySelectorAll("[data-do]")) {
    button.hidden = !shown[button.dataset.do];
  }
}

function lost(node) {
  if (node.state === "starting") return "It starts.";
  return node.state === "lost" ? "The others have given it up."
    : "The others wait three seconds for a sign of life.";
}

export function showRooms({ rooms, moreRooms }, colors) {
  byID("no-rooms").hidden = rooms.length > 0;
  const shown = rooms.map((it) => ({ ...it, color: colors.get(it.room) }));
  rebuilt(byID("room-list"), [shown, moreRooms], () => [
    ...shown.map(roomCard),
    ...(moreRooms ? [html("p", { class: "soft" }, `And ${moreRooms} more.`)] : []),
  ]);
}

function roomCard({ room, home, people, count, flows, color }) {
  const names = new Map(people.map((it) => [it.participant, it.name]));
  const cells = (tag, texts) => html("tr", {}, ...texts.map((it) => html(tag, {}, it)));
  const rows = people.map(({ name, node, role, connection }) =>
    cells("td", [name, connection === "disconnected" ? "–" : node, role, connection]));
  const element = html("article", { class: "room", "data-room": room },
    html("h3", {}, html("span", { class: "dot" }), room,
      html("span", { class: "sign" }, `home: ${home}`),
      html("span", { class: "sign" }, counted(count, "person", "people"))),
    people.length ? html("table", {},
      html("thead", {}, cells("th", ["Name", "Node", "Role", "Connection"])),
      html("tbody", {}, ...rows)) : null,
    html("h4", {}, flows.length
      ? "Media between nodes, from each publisher’s to those of its viewers"
      : "No media between nodes: nobody watches somebody at another one."),
    html("ul", { class: "tree" }, ...branches(flows).map((it) => branch(it, names))));
  element.style.setProperty("--color", color);
  return element;
}

/** One branch for each publisher and node that takes its streams. */
function branches(flows) {
  const found = new Map();
  for (const flow of flows) {
    const key = `${flow.from}>${flow.to}/${flow.participant}`;
    const { bitrate = 0, media = [], viewers = 0, ...same } = found.get(key) ?? flow;
    found.set(key, {
      ...same, media: [...media, medium(flow)],
      bitrate: found.has(key) ? bitrate + flow.bitrate : flow.bitrate,
      viewers: Math.max(found.has(key) ? viewers : 0, flow.viewers),
    });
  }
  return [...found.values()];
}

function branch({ from, to, participant, media, bitrate, viewers }, names) {
  return html("li", { "data-branch": `${from}>${to}` },
    html("span", { class: "way" }, from, html("span", {}, " → "), to),
    html("span", {}, `${names.get(participant) ?? participant}’s ${listed([...new Set(media)])}`),
    html("span", { class: "rate" },
      `${rate(bitrate)}, for ${counted(viewers, "viewer", "viewers")}`));
}
