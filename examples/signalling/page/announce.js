// What happens in the room, for people who do not see it: screen readers read it out.

import { nameOf } from "./names.js";

const SECONDS = 8; // then it is gone, so that nobody comes across it later

export function announce(text) {
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("announcer").append(line);
  setTimeout(() => line.remove(), SECONDS * 1000);
}

/** The words for an event of the room that `me` is in; `null` for one that needs none. */
export function wordsFor(event, data, me) {
  const isMine = data.participant === me;
  const name = data.participantInfo?.name ?? (data.participant && nameOf(data.participant));
  switch (event) {
    case "participant.joined":
      return isMine || data.rejoined ? null : `${name} has joined`;
    case "participant.left":
      return isMine ? null : `${name} has left`;
    case "participant.awaited":
      return `${name} waits to be let in`;
    case "floor.requested":
      return isMine ? null : `${name} raises a hand`;
    case "stream.created":
      return !isMine && data.streamInfo.source === "screen" ? `${name} shares a screen` : null;
    case "recording.started":
      return "The room is recorded";
    case "recording.stopped":
      return "The room is not recorded any more";
    default:
      return null;
  }
}
