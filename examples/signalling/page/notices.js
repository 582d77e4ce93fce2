// Notices to people about their own rights and state in the room.

/** The current notices: `{text, tone}`, `tone` being `danger`, `accent` or none. */
export function notices(room, layout) {
  const found = [];
  const say = (text, tone = "") => found.push({ text, tone });
  const muted = ["audio", "video"].filter((kind) => room.self.hardMuted.includes(kind));
  if (muted.length) {
    const what = { audio: "your microphone", video: "your camera" };
    const things = muted.map((kind) => what[kind]).join(" and ");
    say(`A moderator has muted you: ${things} will not reach the others.`, "danger");
  } else if (room.isMuted("audio")) {
    say("A moderator has muted everybody.", "danger");
  }
  if (room.isLive) live(room, say);
  else if (room.self.mode === "SIGNALLING_ONLY") {
    say("You are off stage, without sound and picture, until a moderator invites you.");
  } else if (room.self.role === "viewer") say("You watch and listen.");
  if (room.floor === "none") say("You listen. Raise your hand to ask for the floor.");
  if (room.floor === "raised") say("Your hand is raised.", "accent");
  if (room.floor === "held") say("You have the floor.", "accent");
  if (layout === "stage" && room.hasTransport && room.talkers.length === 0) {
    say("Nobody else has spoken yet. Whoever speaks or is pinned is shown here.");
  }
  return found;
}

function live(room, say) {
  if (room.state === "ended") return say("The event has ended.");
  if (!room.isModerator) {
    if (room.state === "ready") say("The event begins soon.");
    return;
  }
  if (room.state === "created") say("Only hosts may enter. Open the doors when you are ready.");
  if (room.state === "ready") say("People come in. They see and hear you once you go on air.");
  if (room.state === "ongoing") say("You are on air.", "danger");
}

/** Text on our own tile while our media is withheld, or `null`. */
export function heldBack(room) {
  if (!room.mayOffer("audio")) return null;
  if (room.isMuted("audio") && room.isMuted("video")) return "muted by a moderator";
  if (room.isMuted("audio")) return "microphone muted by a moderator";
  if (room.isMuted("video")) return "camera muted by a moderator";
  if (room.floor === "none" || room.floor === "raised") return "not on stage";
  return room.isLive && room.state !== "ongoing" ? "not on air" : null;
}
