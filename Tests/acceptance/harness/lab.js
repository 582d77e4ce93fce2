// Runs in a page of the example server: makes calls with the package, and looks at what they see.

import * as client from "./client/index.js";

const calls = {}; // by name
const sockets = {}; // name → its WebSockets, the newest last
const log = []; // [name, event, detail]
const looks = {}; // name → {canvas, track, tone}

const address = () => new URL("ws", location.href.replace(/^http/, "ws"));

/** An element that shows a track in a size. */
function screenOf(id, track) {
  let video = document.getElementById(id);
  if (!video) {
    video = Object.assign(document.createElement("video"), { id, muted: true, autoplay: true });
    document.body.append(video);
  }
  if (video.srcObject?.getTracks()[0] !== track) video.srcObject = track && new MediaStream([track]);
  return video;
}

export const lab = {
  client, calls, log, sockets,

  /** A moving picture of one hue, and a tone. */
  look(name, hue, width = 320, height = 180) {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    let step = 0;
    const timer = setInterval(() => {
      context.fillStyle = `hsl(${hue} 90% 50%)`;
      context.fillRect(0, 0, width, height);
      context.fillStyle = `hsl(${hue} 90% 40%)`;
      context.fillRect((step++ * 8) % width, 0, 24, 24);
    }, 66);
    const [track] = canvas.captureStream(15).getVideoTracks();
    looks[name] = { track, timer };
    return track;
  },

  /** A tone that swells like speech, which a steady one is not taken for. */
  tone() {
    this.audio ??= new AudioContext();
    const sink = this.audio.createMediaStreamDestination();
    const [source, swell] = [440, 4].map((frequency) => {
      const oscillator = this.audio.createOscillator();
      oscillator.frequency.value = frequency;
      oscillator.start();
      return oscillator;
    });
    const [gain, depth] = [this.audio.createGain(), this.audio.createGain()];
    gain.gain.value = depth.gain.value = 0.25;
    swell.connect(depth).connect(gain.gain);
    source.connect(gain).connect(sink);
    return sink.stream.getAudioTracks()[0];
  },

  /** Plays what somebody hears of another; returns the energy of it so far. */
  async hears(watcher, name) {
    const stream = this.idOf(watcher, name);
    const track = stream && calls[watcher].tracks(stream).audio;
    if (!track) return 0;
    const element = screenOf(`${watcher}-${name}-sound`, track);
    element.muted = false;
    element.play().catch(() => {});
    const { received } = await calls[watcher].statistics();
    return received.find((it) => it.kind === "audio" && it.stream === stream)?.audioEnergy ?? 0;
  },

  /** A call over WebSockets whose end tests can bring about. */
  make(name, room, options = {}) {
    sockets[name] = [];
    const transport = () => {
      if (this.isOffline) throw new Error("no network");
      const socket = new WebSocket(address());
      sockets[name].push(socket);
      return socket;
    };
    const given = options.signalling || options.transport ? {} : { transport };
    const call = new client.Call({ room, name, ...given, ...options });
    for (const type of ["joined", "ended", "trackended", "message", "event", "problem"]) {
      call.addEventListener(type, ({ detail }) => {
        log.push([name, type, detail && { ...detail, reason: detail.reason }]);
      });
    }
    return (calls[name] = call);
  },

  async enter(name, room, { hue, width, height, sound = false, ...options } = {}) {
    const call = this.make(name, room, options);
    const video = hue === undefined ? null : this.look(name, hue, width, height);
    await call.connect({ video, audio: sound ? this.tone() : null });
    return call.me;
  },

  idOf(watcher, name, source = null) {
    const call = calls[watcher];
    const who = [...call.participants.values()].find((it) => it.name === name)?.participant;
    const of = [...call.streams.values()].filter((it) => it.participant === who);
    const found = of.find((it) => (source === "screen") === (it.source === "screen"));
    return found?.stream ?? null;
  },

  /** A picture that somebody receives of another: `{rgb, width, height, time}`. */
  sees(watcher, name, source = null) {
    const call = calls[watcher];
    const stream = this.idOf(watcher, name, source);
    const track = stream && call.tracks(stream).video;
    if (!track) return null;
    const video = screenOf(`${watcher}-${name}-${source}`, track);
    video.play().catch(() => {});
    if (!video.videoWidth) return null;
    const context = (this.canvas ??= new OffscreenCanvas(16, 16)).getContext("2d");
    context.drawImage(video, 0, 0, 16, 16);
    const [r, g, b] = context.getImageData(8, 12, 1, 1).data;
    return { rgb: [r, g, b], width: video.videoWidth, height: video.videoHeight, time: video.currentTime };
  },

  screenOf,

  media(watcher, name) {
    const id = this.idOf(watcher, name);
    return id && calls[watcher].streams.get(id);
  },

  /** The reason for which a promise is rejected, and whether its error is of the type. */
  async refused(promise) {
    try {
      return { value: (await promise) ?? null };
    } catch (error) {
      const isTyped = error instanceof client.CallError;
      return { isTyped, reason: error.reason ?? String(error), code: error.code };
    }
  },

  events(name, type) {
    return log.filter((it) => it[0] === name && it[1] === type).map((it) => it[2]);
  },

  async leave(...names) {
    for (const name of names) {
      await calls[name]?.close();
      clearInterval(looks[name]?.timer);
      looks[name]?.track.stop();
      delete calls[name];
    }
    for (const video of document.querySelectorAll("video")) {
      if (names.some((it) => video.id.startsWith(`${it}-`))) video.remove();
    }
  },
};

window.lab = lab;
