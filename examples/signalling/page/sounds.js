// The sound of the others: an element for each track, whether its person has a tile or not.

export class Sounds {
  #players = new Map(); // track → element
  #speaker = "";

  /** Plays these tracks and no others. */
  show(tracks) {
    const wanted = new Set(tracks);
    for (const [track, player] of this.#players) {
      if (wanted.has(track)) continue;
      player.srcObject = null;
      this.#players.delete(track);
    }
    for (const track of wanted) {
      if (this.#players.has(track)) continue;
      const player = new Audio();
      player.srcObject = new MediaStream([track]);
      this.#players.set(track, player);
      this.#route(player);
      this.#play(player);
    }
  }

  /** Plays on this speaker from now on; the empty id is the system's choice. */
  use(speaker) {
    this.#speaker = speaker;
    for (const player of this.#players.values()) this.#route(player);
  }

  /** Plays what the browser had blocked until a click. */
  play() {
    for (const player of this.#players.values()) this.#play(player);
  }

  get speakers() {
    return [...this.#players.values()].map((it) => it.sinkId ?? "");
  }

  #route(player) {
    if ((player.sinkId ?? "") === this.#speaker) return;
    player.setSinkId?.(this.#speaker).catch(() => {}); // unplugged: the system's choice then
  }

  #play(player) {
    player.play().catch((error) => {
      if (error.name === "NotAllowedError") document.dispatchEvent(new Event("play-blocked"));
    });
  }
}
