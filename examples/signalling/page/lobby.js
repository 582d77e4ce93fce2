// The form before the call: what people choose there, and why they could not join.

import { invitation } from "./invitation.js";
import { kept } from "./storage.js";

const byID = (id) => document.getElementById(id);
const parameters = new URLSearchParams(location.search);

export function fillLobby() {
  byID("room").value = parameters.get("room") ?? invitation()?.room ?? "lobby";
  byID("name").value = parameters.get("name") ?? invitation()?.name ?? kept("name");
  for (const id of ["role", "mode"]) choose(byID(id), parameters.get(id));
  byID("knock").checked = parameters.get("knock") === "1";
  byID("room-options").hidden = invitation()?.role !== "moderator";
  byID("options").open = ["role", "mode", "knock"].some((it) => parameters.has(it));
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

/** Whether somebody who comes so is asked for devices: viewers are not before they need them. */
export const needsDevices = () => byID("role").value === "participant";

/** What the form asks of the call. */
export function wish() {
  const role = byID("role").value;
  return {
    room: byID("room").value.trim(), name: byID("name").value.trim(),
    role: role === "viewer" ? "viewer" : "participant",
    mode: role === "guest" ? "SIGNALLING_ONLY" : "SEND_AND_RECV",
    settings: { mode: byID("mode").value, knock: byID("knock").checked },
  };
}

export function setJoinError(message) {
  byID("join-error").textContent = message ?? "";
  byID("join-error").hidden = !message;
}

/** The `CallError` of a join in words. */
export function explain(error) {
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
