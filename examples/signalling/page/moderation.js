// What a moderator does in the panel of people, and questions to us and their answers.

import { report, tell } from "./banner.js";

/** `asker`: an `Asker`; `questions`: those of the call. */
export async function moderate(call, { asker, questions }, type, fields) {
  try {
    if (type === "invite") {
      await questions.invite(fields.participant);
      tell("The invitation is on its way.");
    } else if (type === "participant.update") {
      const name = await asker.ask({
        key: "name", title: "Your name?", text: "Everybody in the room sees it.",
        field: { label: "Name", placeholder: call.name }, yes: "Rename", no: "Keep it",
      });
      if (name) await call.request(type, { ...fields, name });
    } else if (type === "streaming.start") {
      const url = await asker.ask({
        key: "stream", title: "Stream live?", text: "Everybody sees that the room is streamed.",
        field: { label: "RTMP address with its key", placeholder: "rtmp://server/app/key" },
        yes: "Stream", no: "Not now",
      });
      if (url) await call.request(type, { ...fields, url });
    } else if (type !== "room.close" || await asker.ask({
      key: "close", title: "Close the room?", text: "Everybody is disconnected.",
      yes: "Close it", no: "Leave it open", danger: true,
    })) {
      const { results = [] } = await call.request(type, fields);
      const failed = results.find((it) => it.error);
      if (failed) throw new Error(failed.error.message);
    }
  } catch (error) {
    console.error(error);
    report({ message: `Not done: ${error.message}.` });
  }
}

/** Asks us what a moderator wants: `{accepts, publishes}`, or `null` without an answer. */
export async function putQuestion(call, asker, { kind, role, by, expires }) {
  const who = call.roomState.nameOf(by);
  const accepts = await asker.ask(kind === "role"
    ? {
      key: kind, title: `Become ${role}?`, text: `${who ?? "The server"} asks you to be “${role}”.`,
      yes: "Accept", no: "Decline", expires,
    }
    : {
      key: kind, title: "Come on stage?", text: `${who} invites you: the others will see and hear you.`,
      yes: "Come on stage", no: "Decline",
    });
  if (accepts === null) return null;
  const publish = call.roomState.settings.roles.find((it) => it.name === role)?.publish;
  return { accepts, publishes: accepts && (kind === "stage" || Boolean(publish?.audio)) };
}
