// What the tiles show, from the call: whom, in which order, and who is large.

import { heldBack } from "./notices.js";

export const isOn = (media) => Boolean(media) && media.enabled !== false;

/** The stream of somebody's camera and microphone. */
export function streamOf(call, participant) {
  return [...call.streams.values()].find(
    (it) => it.participant === participant && it.source !== "screen",
  );
}

/**
 * All tiles, `{large, people}`: those that take the stage, and the rest in order.
 *
 * Shared screens come first, then people, talking or pinned ones in sfud's order. The grid has
 * everybody, ourselves first; the stage has only the people of the list, the first of them large,
 * and ourselves last. `pinned` is the key of the tile that this viewer wants large.
 */
export function models(call, { layout, devices, pinned }) {
  const streams = [...call.streams.values()].filter((it) => it.participant !== call.me);
  const screens = streams.filter((it) => it.source === "screen").map((stream) => ({
    ...remote(call, stream, nameOf(call, stream.participant)), key: `screen:${stream.stream}`,
    screen: true,
  }));
  if (call.screen) {
    screens.push({
      key: "screen:own", name: call.name, self: true, screen: true, videoTrack: call.screen.video,
      audioOn: true, videoOn: true, connection: "connected",
    });
  }
  const others = people(call, streams);
  const self = own(call, devices);
  const listed = layout === "stage" ? [...others.filter((it) => it.listed), self] : [self, ...others];
  const mine = [...screens, self, ...others].find((it) => it.key === pinned);
  if (mine) mine.mine = true;
  const all = [...new Set([mine, ...screens, ...listed])].filter(Boolean);
  const isLarge = mine || screens.length || (layout === "stage" && listed.length > 1);
  if (!isLarge) return { large: [], people: all };
  all[0].large = true;
  const large = all.filter((it) => it.large || it.screen);
  return { large, people: all.filter((it) => !large.includes(it)) };
}

/** What the call has to receive for these tiles: `{view, streams}`, as `Call.set` has them. */
export function wantedFor({ layout, shown, isPaged }) {
  const streams = (models) => models.filter((it) => it.stream).map((it) => it.stream.stream);
  if (layout === "stage") return { view: "talkers", streams: streams(shown.filter((it) => it.mine)) };
  return isPaged ? { view: "heard", streams: streams(shown) } : { view: "all", streams: [] };
}

function people(call, streams) {
  const { talkers } = call.roomState;
  const place = ({ participant }) => {
    const found = talkers.findIndex((it) => it.participant === participant);
    return found < 0 ? talkers.length : found;
  };
  return [...call.participants.values()]
    .filter((it) => it.participant !== call.me)
    .sort((left, right) => place(left) - place(right))
    .map((participant) => {
      const talker = talkers.find((it) => it.participant === participant.participant);
      const stream = streams.find(
        (it) => it.participant === participant.participant && it.source !== "screen",
      );
      return {
        ...remote(call, stream, nameOf(call, participant.participant)),
        key: `participant:${participant.participant}`, screen: false,
        connection: participant.connection, listed: Boolean(talker),
        talking: talker?.talking ?? false, pinned: talker?.pinned ?? false,
      };
    });
}

function own(call, devices) {
  return {
    key: "self", name: call.name, self: true, screen: false, videoTrack: devices.video,
    connection: "connected", held: heldBack(call.roomState),
    audioOn: devices.audio?.enabled === true && call.roomState.mayOffer("audio")
      && !call.roomState.isMuted("audio"),
    videoOn: devices.video?.enabled === true && call.roomState.mayOffer("video"),
  };
}

function remote(call, stream, name) {
  return {
    name, self: false, stream, connection: "connected",
    videoTrack: stream ? call.tracks(stream.stream).video : null,
    audioOn: isOn(stream?.audio), videoOn: isOn(stream?.video),
  };
}

function nameOf(call, participant) {
  return call.participants.get(participant)?.name || participant;
}
