// The map: nodes, their links, who is connected where, and the media between nodes.

import { keyed, say, set, svg } from "./elements.js";
import { counted, initials, isOff, listed, rate, STATES } from "./words.js";

const PLACES = { a: [240, 108], b: [96, 306], c: [384, 306] };
const CENTER = [240, 240];
const RADIUS = 52;
const RING = 46;
const CHIP = 15;
const CHIP_DISTANCE = 76; // of a person's center from the node's
const CHIP_ANGLE = 0.46; // radians between two persons
const MOST_CHIPS = 8;
const PLATE = 18; // height behind words on a line
const BOW = 34; // how far a flow bends away from its link
const ROOM_BOW = 15; // and that of each further room

const byID = (id) => document.getElementById(id);
const away = (connection) => connection !== "connected";

export function draw(picture, colors) {
  const nodes = new Map(picture.nodes.map((it) => [it.name, it]));
  drawLinks(picture.links, nodes);
  drawNodes(picture, colors);
  drawPeople(picture, colors);
  drawFlows(picture, colors);
  say(byID("diagram-words"), words(picture));
}

function words({ nodes, rooms }) {
  const states = nodes.map((it) => `node ${it.name} is ${STATES[it.state]}`);
  const homes = rooms.map((it) => `room ${it.room} has its home at ${it.home}`);
  return `${listed([...states, ...homes])}.`;
}

function drawLinks(links, nodes) {
  keyed(byID("links"), links, {
    key: ({ between }) => between.join("-"),
    make: () => svg("g", {}, svg("path", { class: "link" }), plate(), svg("text", { class: "soft-text" })),
    update(group, { between, state, roundTripMilliseconds: trip }) {
      const [[x1, y1], [x2, y2]] = between.map((it) => PLACES[it]);
      const isDown = state !== "up" || between.some((it) => isOff(nodes.get(it)));
      const [path, ground, text] = group.children;
      set(path, { d: `M${x1} ${y1}L${x2} ${y2}`, class: isDown ? "link is-down" : "link" });
      const words = isDown ? "down" : trip === null ? "" : `${trip.toFixed(1)} ms`;
      label(ground, text, words, [(x1 + x2) / 2, (y1 + y2) / 2]);
      group.setAttribute("data-link", between.join("-"));
    },
  });
}

function drawNodes({ nodes, rooms }, colors) {
  const around = 2 * Math.PI * RING;
  keyed(byID("nodes"), nodes, {
    key: (node) => node.name,
    make: ({ name }) => svg("g", { "data-node": name },
      svg("circle", { class: "disc", r: RADIUS }),
      svg("circle", { class: "ring", r: RING, transform: "rotate(-90)" }),
      svg("text", { class: "node-name", y: -13 }, name),
      svg("text", { class: "soft-text", y: 11 }),
      svg("text", { class: "home-text", y: 29 })),
    update(group, node) {
      const [, ring, , state, home] = group.children;
      const [x, y] = PLACES[node.name];
      const kind = isOff(node) ? "is-off" : node.state === "draining" ? "is-draining" : "";
      set(group, { transform: `translate(${x} ${y})`, class: kind });
      const share = Math.min(1, Math.max(0.015, node.load)) * around;
      set(ring, { "stroke-dasharray": `${share} ${around}` });
      say(state, node.state === "up" ? `${Math.round(node.load * 100)} % busy` : STATES[node.state]);
      const homes = rooms.filter((it) => it.home === node.name);
      say(home, homes.length === 0 ? "" : homes.length > 1 ? `⌂ ${homes.length} rooms`
        : `⌂ ${shortened(homes[0].room)}`);
      home.style.setProperty("--color", homes.length === 1 ? colors.get(homes[0].room) : "var(--text)");
    },
  });
}

const plate = () => svg("rect", { class: "plate", rx: 8, height: PLATE });

/** Words on a plate of their size. */
function label(ground, text, words, [x, y]) {
  say(text, words);
  set(text, { x, y });
  const width = words && 10 + text.getComputedTextLength();
  set(ground, { x: x - width / 2, y: y - PLATE / 2, width: width || 0 });
}

const shortened = (name) => (name.length > 9 ? `${name.slice(0, 8)}…` : name);

function drawPeople({ rooms }, colors) {
  const here = new Map(Object.keys(PLACES).map((it) => [it, []]));
  for (const room of rooms) {
    for (const person of room.people) here.get(person.node)?.push({ ...person, room: room.room });
  }
  const chips = [...here].flatMap(([node, people]) => {
    const shown = people.length > MOST_CHIPS ? people.slice(0, MOST_CHIPS - 1) : people;
    const rest = people.length - shown.length;
    const all = rest ? [...shown, { participant: `more-${node}`, node, rest }] : shown;
    return all.map((it, index) => ({ ...it, place: chipPlace(node, index, all.length) }));
  });
  keyed(byID("people"), chips, {
    key: ({ room = "", participant, node }) => `${room}/${participant}/${node}`,
    make: () => svg("g", {},
      svg("title"), svg("circle", { class: "chip", r: CHIP }), svg("text", { class: "chip-text" })),
    update(group, { name, node, room, connection, rest, place: [x, y] }) {
      const [title, , text] = group.children;
      const isAway = !rest && away(connection);
      set(group, {
        transform: `translate(${x} ${y})`, class: isAway ? "person is-away" : "person",
        "data-person": name ?? "", "data-at": node,
      });
      group.style.setProperty("--color", room ? colors.get(room) : "var(--quiet)");
      say(text, rest ? `+${rest}` : initials(name));
      say(title, rest ? `${rest} more at ${node}` : `${name}, ${connection}, in room ${room}`);
    },
  });
}

/** People stand around their node, on the side away from the others. */
function chipPlace(node, index, count) {
  const [x, y] = PLACES[node];
  const outward = Math.atan2(y - CENTER[1], x - CENTER[0]);
  const angle = outward + (index - (count - 1) / 2) * CHIP_ANGLE;
  return [x + CHIP_DISTANCE * Math.cos(angle), y + CHIP_DISTANCE * Math.sin(angle)];
}

function drawFlows({ rooms }, colors) {
  const ways = rooms.flatMap(({ room, flows }, order) => {
    const byWay = new Map();
    for (const flow of flows) {
      const way = `${flow.from}>${flow.to}`;
      byWay.set(way, [...(byWay.get(way) ?? []), flow]);
    }
    return [...byWay].map(([way, all]) => ({ room, way, order, ...shape(all[0], order), all }));
  });
  const key = ({ room, way }) => `${room}/${way}`;
  keyed(byID("flows"), ways, {
    key,
    make: () => svg("g", {}, svg("path", { class: "flow-ground" }),
      svg("path", { class: "flow" }), svg("path", { class: "head" })),
    update(group, { room, way, path, head }) {
      const [ground, flow, arrow] = group.children;
      set(group, { "data-flow": way, "data-room": room });
      group.style.setProperty("--color", colors.get(room));
      set(ground, { d: path });
      set(flow, { d: path });
      set(arrow, { d: head });
    },
  });
  keyed(byID("rates"), ways, {
    key,
    make: () => svg("g", {}, plate(), svg("text", { class: "rate-text" })),
    update(group, { all, middle }) {
      const [ground, text] = group.children;
      const bits = all.reduce((sum, it) => sum + it.bitrate, 0);
      label(ground, text, bits ? rate(bits) : counted(all.length, "stream", "streams"), middle);
    },
  });
}

/** A curve from node to node beside their link, with the head of its arrow and a label's place. */
function shape({ from, to }, order) {
  const [[x1, y1], [x2, y2]] = [PLACES[from], PLACES[to]];
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [nx, ny] = [-uy, ux]; // to the left of the way, so that both directions have a side
  const bow = BOW + order * ROOM_BOW;
  const turn = 0.3 + order * 0.16; // radians at which it leaves the node
  const edge = (x, y, dx, dy) => {
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    return [x + (dx * cos + nx * sin) * (RADIUS + 5), y + (dy * cos + ny * sin) * (RADIUS + 5)];
  };
  const [sx, sy] = edge(x1, y1, ux, uy);
  const [ex, ey] = edge(x2, y2, -ux, -uy);
  const [cx, cy] = [(x1 + x2) / 2 + nx * bow * 1.6, (y1 + y2) / 2 + ny * bow * 1.6];
  const [tx, ty] = [ex - cx, ey - cy].map((it) => it / Math.hypot(ex - cx, ey - cy));
  const tip = (forward, side) => `${ex + tx * forward - ty * side} ${ey + ty * forward + tx * side}`;
  const at = 0.42; // nearer to where it comes from
  const point = (p1, control, p2) =>
    (1 - at) ** 2 * p1 + 2 * at * (1 - at) * control + at ** 2 * p2;
  return {
    path: `M${sx} ${sy}Q${cx} ${cy} ${ex - tx * 6} ${ey - ty * 6}`,
    head: `M${tip(3, 0)}L${tip(-9, 6)}L${tip(-9, -6)}Z`,
    middle: [point(sx, cx, ex) + nx * 4, point(sy, cy, ey) + ny * 4],
  };
}
