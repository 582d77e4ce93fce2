// Our own rights and state in the room: their texts and controls.

import { notices } from "./notices.js";

const byID = (id) => document.getElementById(id);
const buttons = (action) => document.querySelectorAll(`[data-do="${action}"]`);

/** Updates the controls that depend on our role, on moderators and on the kind of room. */
export function showStanding(room, showsPeople, layout, invited) {
  const signs = [
    room.locked && ["locked", ""],
    room.hardMuted && ["all muted", "is-danger"],
    room.recording && ["\u25cf recording", "is-danger"],
    room.streaming && ["\u25cf streamed live", "is-danger"],
    room.isLive && room.state === "ongoing" && ["on air", "is-danger"],
  ];
  fill(byID("head-signs"), signs.filter(Boolean).map(([text, style]) => [text, `sign ${style}`]));
  fill(byID("notices"), notices(room, layout).map(({ text, tone }) => [text, `notice ${tone}`]));
  for (const kind of ["audio", "video"]) {
    for (const button of buttons(kind)) {
      if (button.closest("nav")) button.hidden = !room.mayOffer(kind);
    }
  }
  for (const button of buttons("screen")) button.hidden = !room.mayOffer("screen");
  const hands = { none: "Raise your hand", raised: "Lower your hand", held: "Give the floor back" };
  for (const button of buttons("hand")) {
    button.hidden = room.floor === null;
    button.setAttribute("aria-pressed", String(room.floor === "raised" || room.floor === "held"));
    button.setAttribute("aria-label", hands[room.floor] ?? "");
    button.title = `${hands[room.floor]} (H)`;
  }
  // If joining needs an invitation, a link without one is useless.
  byID("copy").hidden = invited && !room.isModerator;
  const requests = room.isModerator ? room.awaited.size + room.raisedHands.length : 0;
  byID("requests").hidden = requests === 0;
  byID("requests").textContent = String(requests);
  for (const button of buttons("people")) {
    if (!button.closest("nav")) continue;
    button.setAttribute("aria-pressed", String(showsPeople));
    button.setAttribute("aria-label", requests ? `People (${requests} waiting)` : "People");
  }
  byID("people").hidden = !showsPeople;
}

/** Makes a list of `[text, class]` the element's children, unless it is that already. */
function fill(element, items) {
  const before = JSON.stringify([...element.children].map((it) => [it.textContent, it.className]));
  if (before === JSON.stringify(items)) return;
  element.replaceChildren(...items.map(([text, style]) => {
    const span = document.createElement("span");
    span.textContent = text;
    span.className = style;
    return span;
  }));
}
