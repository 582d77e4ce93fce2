// The panel of people: the participants, and a moderator's actions on them.

import { MODERATOR } from "./client/index.js";
import { hue, initials } from "./tiles.js";

const MODES = { RECV_ONLY: "listens only", SIGNALLING_ONLY: "off stage" };
const STATES = { created: "Created", ready: "Ready", ongoing: "On air", ended: "Ended" };
const MOST_AT_ONCE = 100; // people that one request may let in
const STEPS = {
  created: { state: "ready", label: "Open the doors" },
  ready: { state: "ongoing", label: "Go on air" },
};

/** Shows a `RoomState`; `act(type, fields)` is called for each action. */
export class People {
  #element;
  #act;
  #shown = "";
  #open = new Set(); // participants whose extra buttons are shown

  constructor(element, act) {
    this.#element = element;
    this.#act = act;
  }

  /** `isOn(participant, kind)`: whether the participant sends this and has it switched on. */
  show(room, isOn) {
    const media = [...room.participants.keys()].map((id) => [isOn(id, "audio"), isOn(id, "video")]);
    const signature = JSON.stringify([
      room.me, [...room.participants.values()], [...room.awaited.values()], room.raisedHands,
      room.holder, room.pins, room.locked, room.hardMuted, room.recording, room.streaming, room.state,
      room.settings, media, [...this.#open],
    ]);
    if (signature === this.#shown) return;
    this.#shown = signature;
    const focused = this.#element.contains(document.activeElement)
      ? document.activeElement.dataset.key
      : null;
    this.#element.replaceChildren(
      ...(room.isLive ? [this.#event(room)] : []),
      ...(room.isModerator ? this.#moderating(room) : []),
      this.#roster(room, isOn),
    );
    if (focused) {
      const again = this.#element.querySelector(`[data-key="${CSS.escape(focused)}"]`);
      (again ?? this.#element.closest("aside")).focus();
    }
  }

  #event(room) {
    const names = Object.keys(STATES);
    const steps = names.map((state) =>
      make("li", {
        class: names.indexOf(state) < names.indexOf(room.state) ? "is-past" : "",
        "aria-current": state === room.state ? "step" : null,
      }, STATES[state]),
    );
    const next = STEPS[room.state];
    const buttons = !room.isModerator || room.state === "ended" ? [] : [
      next && this.#button(next.label, "room.setState", { state: next.state }, { class: "pill good" }),
      this.#button("End the event", "room.setState", { state: "ended" }, { class: "pill bad" }),
    ];
    return section("Live event", make("ol", { class: "steps" }, ...steps), ...(buttons.length ? [row(...buttons)] : []));
  }

  #moderating(room) {
    const sections = [
      section(
        "Room",
        row(
          room.locked
            ? this.#button("Unlock", "room.unlock", {}, { key: "lock", icon: "lock", pressed: true })
            : this.#button("Lock", "room.lock", {}, { key: "lock", icon: "lock", pressed: false }),
          room.hardMuted
            ? this.#button("Unmute all", "room.hardUnmute", {},
              { key: "mute", icon: "mic-off", pressed: true })
            : this.#button("Mute all", "room.hardMute", { sparing: "moderators" },
              { key: "mute", icon: "mic-off", pressed: false }),
          room.may("record") && (room.recording
            ? this.#button("Stop recording", "recording.stop", {}, { key: "record", pressed: true })
            : this.#button("Record", "recording.start", {}, { key: "record", pressed: false })),
          room.may("stream") && (room.streaming
            ? this.#button("Stop streaming", "streaming.stop", {}, { key: "stream", pressed: true })
            : this.#button("Stream live", "streaming.start", {}, { key: "stream", pressed: false })),
          this.#button("Close", "room.close", {}, { class: "pill bad", icon: "leave", of: "the room" }),
        ),
      ),
    ];
    if (room.awaited.size) {
      const people = [...room.awaited.values()].map(({ participant, name }) => {
        const fields = { participants: [participant] };
        return [
          participant, name || participant, [
            ["Let in", "participant.approve", "pill good", fields],
            ["Send away", "participant.deny", "pill", fields],
          ],
        ];
      });
      const queue = this.#queue("Waiting to be let in", people);
      if (people.length > 1) {
        const participants = people.map(([id]) => id).slice(0, MOST_AT_ONCE);
        const button = ["Let all in", "participant.approve", { participants }];
        queue.append(row(this.#button(...button, { class: "pill good", key: "let-in" })));
      }
      sections.push(queue);
    }
    const hands = room.raisedHands.map((id) => [
      id, room.nameOf(id), [
        ["Give the floor", "floor.grant", "pill good", { participant: id }],
        ["Not now", "floor.deny", "pill", { participant: id }],
      ],
    ]);
    if (room.holder) {
      const fields = { participant: room.holder };
      const button = ["Take the floor back", "floor.release", "pill", fields];
      hands.unshift([room.holder, `${room.nameOf(room.holder)} speaks`, [button]]);
    }
    if (hands.length) sections.push(this.#queue("Floor", hands));
    return sections;
  }

  #queue(title, people) {
    const items = people.map(([participant, name, buttons]) =>
      make("li", { class: "waiter", "data-participant": participant },
        make("span", { class: "waiter-name" }, name),
        row(...buttons.map(([label, type, style, fields]) =>
          this.#button(label, type, fields, { class: style, of: name }))),
      ),
    );
    return section(title, make("ul", {}, ...items));
  }

  #roster(room, isOn) {
    const people = [...room.participants.values()].map((it) => this.#person(room, it, isOn));
    return section(`In the room (${people.length})`, make("ul", { class: "roster" }, ...people));
  }

  #person(room, person, isOn) {
    const id = person.participant;
    const name = person.name || id;
    const self = id === room.me;
    const avatar = make("span", { class: "avatar", "aria-hidden": "true" }, initials(name));
    avatar.style.setProperty("--hue", hue(name));
    const who = make("div", { class: "person-who" },
      make("span", { class: "person-name" }, self ? `${name} (you)` : name),
      make("span", { class: "signs" }, ...signs(room, person)),
    );
    const item = make("li", { class: "person", "data-participant": id }, avatar, who);
    if (self) {
      const rename = this.#button("Rename", "participant.update", {}, { of: "yourself" });
      item.append(make("div", { class: "person-do" }, rename));
    }
    if (!room.isModerator || self) return item;
    const media = [["audio", "mic", "microphone"], ["video", "camera", "camera"]];
    const open = this.#open.has(id);
    const more = make("button", {
      type: "button", class: "small", "data-key": `more:${id}`, title: "More",
      "aria-label": `More for ${name}`, "aria-expanded": String(open),
    }, icon("more"));
    more.addEventListener("click", () => {
      if (!this.#open.delete(id)) this.#open.add(id);
      this.show(room, isOn);
    });
    item.append(
      make("div", { class: "person-do" },
        ...media.map(([kind, picture, word]) => {
          const muted = person.hardMuted.includes(kind);
          const off = muted || !isOn(id, kind);
          return this.#button(
            `${muted ? "Unmute" : "Mute"} ${name}’s ${word}`, `participant.${muted ? "hardUnmute" : "hardMute"}`,
            { participant: id, media: [kind] },
            {
              class: `small${muted ? " is-muted" : ""}`, key: `${kind}:${id}`, pressed: muted,
              icon: off ? `${picture}-off` : picture, bare: true,
            },
          );
        }),
        more,
      ),
    );
    if (open) item.append(row(...this.#further(room, person, name)));
    return item;
  }

  #further(room, { participant, role, mode }, name) {
    const of = name;
    const pinned = room.pins.includes(participant);
    const roles = room.settings.roles
      .map((it) => it.name)
      .filter((it) => it !== role && it !== MODERATOR);
    const onStage = mode === "SEND_AND_RECV";
    return [
      pinned
        ? this.#button("Unpin", "pin.remove", { participants: [participant] }, { of, icon: "pin" })
        : this.#button("Pin", "pin.add", { participants: [participant] }, { of, icon: "pin" }),
      onStage
        ? this.#button("Take off stage", "participant.setMode", { participant, mode: "SIGNALLING_ONLY" }, { of })
        : this.#button("Invite on stage", "invite", { participant }, { of }),
      ...roles.map((it) =>
        this.#button(`Ask to be ${it}`, "role.change", { participant, role: it }, { of })),
      role !== MODERATOR && this.#button("Make moderator", "moderator.transfer", { participant }, { of }),
      this.#button("Drop", "participant.drop", { participants: [participant] }, { of, class: "pill bad" }),
    ];
  }

  /** `of`: the participant, for screen readers; `bare`: shows only the icon. */
  #button(label, type, fields, options = {}) {
    const { of, bare, pressed, key = `${type}:${JSON.stringify(fields)}` } = options;
    const button = make("button", {
      type: "button", class: options.class ?? "pill", "data-key": key, "data-act": type,
      "aria-label": bare ? label : of ? `${label}: ${of}` : null, title: bare ? label : null,
      "aria-pressed": pressed === undefined ? null : String(pressed),
    }, ...(options.icon ? [icon(options.icon)] : []), ...(bare ? [] : [label]));
    button.addEventListener("click", () => this.#act(type, fields));
    return button;
  }
}

function signs(room, { participant, role, mode, hardMuted, connection }) {
  const all = [
    role !== "participant" && [role, role === MODERATOR ? "is-accent" : ""],
    room.holder === participant && ["has the floor", "is-accent"],
    room.raisedHands.includes(participant) && ["hand raised", "is-warm"],
    room.pins.includes(participant) && ["pinned", ""],
    MODES[mode] && [MODES[mode], ""],
    hardMuted.length && [`${hardMuted.length === 2 ? "mic and camera" : words[hardMuted[0]]} muted`,
      "is-danger"],
    ["reconnecting", "disconnected", "connecting"].includes(connection) && [connection, "is-warm"],
  ];
  return all.filter(Boolean).map(([text, style]) => make("span", { class: `sign ${style}` }, text));
}

const words = { audio: "mic", video: "camera" };

function section(title, ...children) {
  return make("section", {}, make("h3", {}, title), ...children);
}

function row(...children) {
  return make("div", { class: "row" }, ...children.filter(Boolean));
}

function icon(name) {
  const [picture, use] = ["svg", "use"].map((it) =>
    document.createElementNS("http://www.w3.org/2000/svg", it));
  use.setAttribute("href", `#i-${name}`);
  picture.setAttribute("aria-hidden", "true");
  picture.append(use);
  return picture;
}

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
