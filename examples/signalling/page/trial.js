// What tests, and people who try things out, reach as `window.sfudDemo`.

import { inviteLink } from "./link.js";

export function expose({ act, join, sounds, pages, tiles, call, error, layout }) {
  window.sfudDemo = {
    /** idle · joining · awaited · joined · reconnecting · left */
    get state() { return call()?.state ?? "idle"; },
    get error() { return error(); },
    get layout() { return layout(); },
    get page() { return { current: pages.current, count: pages.count }; },
    get room() { return call()?.room ?? null; },
    get participant() { return call()?.me ?? null; },
    get peerConnection() { return call()?.peer?.pc ?? null; },
    get roomState() { return call()?.roomState ?? null; },
    get streams() { return call() ? [...call().streams.values()] : []; },
    get speakers() { return sounds.speakers; },
    tiles: () => tiles.all.map((tile) => ({
      key: tile.model.key, name: tile.model.name, participant: tile.model.stream?.participant ?? null,
      place: Number(tile.element.style.order), large: tile.model.large ?? false,
      screen: tile.model.screen, talking: tile.element.classList.contains("is-speaking"),
      pinned: tile.element.querySelector(".tile-pinned").checkVisibility(),
      audioOn: tile.model.audioOn, videoOn: tile.model.videoOn, bars: tile.reading?.bars ?? null,
      connection: tile.model.connection, width: tile.video.videoWidth,
      height: tile.video.videoHeight, time: tile.video.currentTime,
    })),
    stats: () => call()?.statistics() ?? null,
    act,
    join,
    inviteLink: () => inviteLink(call()),
    request: (type, fields) => call().request(type, fields),
    restartICE: () => call()?.restartIce(),
  };
}
