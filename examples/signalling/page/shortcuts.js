// Keys that work anywhere on the page, but in a field and in a dialog.

import { Settings } from "./settings.js";

const LETTERS = {
  m: "audio", v: "video", s: "screen", t: "layout", i: "stats", p: "people", c: "chat", d: "settings",
  h: "hand", L: "leave",
};
const KEYS = { PageUp: "back", PageDown: "on" };

/** Calls `run(action)`; the action `close` is that of Escape. */
export function onShortcut(run) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (document.querySelector("dialog[open]") || event.target.matches?.("select")) return;
    if (event.key === "Escape" && !document.querySelector(":popover-open")) return run("close");
    if (event.target.matches?.("input")) return;
    const action = KEYS[event.key] ?? (Settings.hasKeys ? LETTERS[event.key] : null);
    if (!action) return;
    event.preventDefault();
    run(action);
  });
}
