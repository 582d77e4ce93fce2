// One WebRTC peer in a page; the tests call window.peer.
// The picture and the tone are those of media.py: keep the two in step.

const COUNTER_BITS = 16;
const COUNTER_SHARE = 0.25;
const now = () => (performance.timeOrigin + performance.now()) / 1000;

// Returns a function like Math.random, with a seed (mulberry32).
const randomFrom = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};

class Source {
  constructor({ hue, tone, speech, beeps, width, height, fps, noise }) {
    this.hue = hue;
    this.noise = noise;
    this.canvas = document.createElement("canvas");
    this.canvas.width = width;
    this.canvas.height = height;
    this.canvas.style.width = "64px";
    document.body.append(this.canvas);
    this.context = this.canvas.getContext("2d");
    this.counter = 0;
    this.fps = fps;
    this.beeps = beeps;
    // Times of each beep, by the wall clock and by the audio clock.
    this.clocks = [];
    this.video = this.canvas.captureStream(fps).getVideoTracks()[0];
    this.audioContext = new AudioContext();
    this.oscillator = this.audioContext.createOscillator();
    this.tone = tone;
    this.oscillator.frequency.value = tone;
    const gain = this.audioContext.createGain();
    gain.gain.value = speech || beeps ? 0 : 0.5;
    this.gain = gain.gain;
    const sink = this.audioContext.createMediaStreamDestination();
    this.oscillator.connect(gain).connect(sink);
    this.oscillator.start();
    this.audio = sink.stream.getAudioTracks()[0];
    this.draw();
    this.timer = setInterval(() => this.draw(), 1000 / fps);
  }

  draw() {
    const { width, height } = this.canvas;
    const upper = Math.floor((height * (1 - COUNTER_SHARE)) / 2) * 2;
    this.context.fillStyle = `hsl(${this.hue} 100% 50%)`;
    this.context.fillRect(0, 0, width, upper);
    const bar = Math.floor(width / 16);
    this.context.fillStyle = "white";
    this.context.fillRect((this.counter * 8) % (width - bar), 0, bar, upper);
    if (this.noise) this.drawNoise(width, upper);
    const cell = width / COUNTER_BITS;
    for (let bit = 0; bit < COUNTER_BITS; bit++) {
      const set = (this.counter >> (COUNTER_BITS - 1 - bit)) & 1;
      this.context.fillStyle = set ? "white" : "black";
      this.context.fillRect(bit * cell, upper, cell, height - upper);
    }
    if (this.beeps && this.counter % this.fps === 0) this.beep();
    this.counter = (this.counter + 1) & 0xffff;
  }

  // Beeps for a fifth of a second, from now on.
  beep() {
    const time = this.audioContext.currentTime;
    this.clocks.push([now(), time]);
    this.gain.setValueAtTime(0.5, time);
    this.gain.setValueAtTime(0, time + 0.2);
  }

  // Noise that is hard to encode, the harder the more specks there are. A frame's number decides
  // where they are, so that two runs have the same pictures.
  drawNoise(width, height) {
    const random = randomFrom(this.counter);
    for (let speck = 0; speck < this.noise; speck++) {
      const light = 30 + random() * 40;
      this.context.fillStyle = `hsl(${this.hue} 100% ${light}%)`;
      const [x, y] = [random() * width, random() * height];
      this.context.fillRect(x, y, width / 20, height / 20);
    }
  }

  // Syllables of 200 ms, each louder or softer than the one before, or silence. With `sweep` the
  // tone rises by so many hertz a second from the first syllable on, to measure a listener's delay.
  speak(on, sweep) {
    const time = this.audioContext.currentTime;
    this.oscillator.frequency.cancelScheduledValues(time);
    this.oscillator.frequency.setValueAtTime(this.tone, time);
    if (sweep) this.oscillator.frequency.linearRampToValueAtTime(this.tone + 4 * sweep, time + 4);
    this.gain.cancelScheduledValues(time);
    this.gain.setValueAtTime(0, time);
    for (let syllable = 0; on && syllable < 400; syllable++) {
      const start = time + syllable * 0.24;
      const loudness = 0.15 + 0.35 * ((syllable * 7) % 5) / 4;
      this.gain.setTargetAtTime(loudness, start, 0.015);
      this.gain.setTargetAtTime(0.01, start + 0.15, 0.02);
    }
  }

  stop() {
    clearInterval(this.timer);
    this.video.stop();
    this.audio.stop();
    this.audioContext.close();
  }
}

// Reads every frame that a video element shows.
class Picture {
  constructor(track) {
    this.frames = [];
    this.canvas = document.createElement("canvas");
    this.canvas.width = 64;
    this.canvas.height = 32;
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.element = document.createElement("video");
    this.element.muted = true;
    this.element.playsInline = true;
    this.element.style.width = "64px";
    this.element.srcObject = new MediaStream([track]);
    document.body.append(this.element);
    this.element.play();
    const read = (_, metadata) => {
      this.read(metadata);
      this.element.requestVideoFrameCallback(read);
    };
    this.element.requestVideoFrameCallback(read);
  }

  read(metadata) {
    const time = now();
    const { width, height } = this.canvas;
    this.context.drawImage(this.element, 0, 0, width, height);
    const pixels = this.context.getImageData(0, 0, width, height).data;
    const upper = height * (1 - COUNTER_SHARE);
    let [red, green, blue] = [0, 0, 0];
    for (let at = 0; at < upper * width * 4; at += 4) {
      red += pixels[at];
      green += pixels[at + 1];
      blue += pixels[at + 2];
    }
    const count = upper * width;
    const row = Math.floor(height * (1 - COUNTER_SHARE / 2)) * width;
    let counter = 0;
    for (let bit = 0; bit < COUNTER_BITS; bit++) {
      const at = 4 * (row + Math.floor(((bit + 0.5) * width) / COUNTER_BITS));
      counter = (counter << 1) | (pixels[at + 1] > 127 ? 1 : 0);
    }
    const colour = [red / count, green / count, blue / count];
    this.frames.push([time, metadata.width, metadata.height, ...colour, counter]);
  }
}

// Measures the loudest frequency ten times a second.
class Ear {
  constructor(track) {
    this.sounds = [];
    const stream = new MediaStream([track]);
    // Chromium lets a remote track reach Web Audio only while an element plays it,
    // and decodes it only if that is not muted.
    this.element = document.createElement("audio");
    this.element.srcObject = stream;
    this.element.play();
    this.context = new AudioContext();
    this.analyser = this.context.createAnalyser();
    this.analyser.fftSize = 4096;
    this.analyser.smoothingTimeConstant = 0;
    this.context.createMediaStreamSource(stream).connect(this.analyser);
    this.wave = new Float32Array(this.analyser.fftSize);
    this.spectrum = new Float32Array(this.analyser.frequencyBinCount);
    this.timer = setInterval(() => this.read(), 100);
  }

  read() {
    this.analyser.getFloatTimeDomainData(this.wave);
    this.analyser.getFloatFrequencyData(this.spectrum);
    const energy = this.wave.reduce((sum, sample) => sum + sample * sample, 0);
    let loudest = 0;
    this.spectrum.forEach((level, bin) => {
      if (level > this.spectrum[loudest]) loudest = bin;
    });
    const tone = (loudest * this.context.sampleRate) / this.analyser.fftSize;
    this.sounds.push([now(), Math.sqrt(energy / this.wave.length), tone]);
  }

  stop() {
    clearInterval(this.timer);
    this.context.close();
  }
}

class Peer {
  constructor(configuration) {
    this.connection = new RTCPeerConnection({ bundlePolicy: "max-bundle", ...configuration });
    this.sources = [];
    this.pictures = new Map();
    this.ears = new Map();
    // Why an ICE server gave no candidate, by its URL.
    this.refusals = {};
    this.connection.addEventListener("icecandidateerror", ({ url, errorCode }) => {
      (this.refusals[url] ??= []).push(errorCode);
    });
    this.connection.addEventListener("track", ({ track, transceiver }) => {
      const [map, Meter] =
        track.kind === "video" ? [this.pictures, Picture] : [this.ears, Ear];
      if (!map.has(transceiver.mid)) map.set(transceiver.mid, new Meter(track));
    });
  }

  publish({ codec, audio, video, simulcast, bitrates, sendrecv, ...look }) {
    const source = new Source(look);
    this.sources.push(source);
    const direction = sendrecv ? "sendrecv" : "sendonly";
    const init = { direction, streams: [new MediaStream()] };
    if (audio) this.connection.addTransceiver(source.audio, init);
    if (!video) return;
    if (simulcast) {
      init.sendEncodings = [
        { rid: "q", scaleResolutionDownBy: 4 },
        { rid: "h", scaleResolutionDownBy: 2 },
        { rid: "f" },
      ];
      bitrates?.forEach((most, layer) => (init.sendEncodings[layer].maxBitrate = most));
    }
    const transceiver = this.connection.addTransceiver(source.video, init);
    if (codec) {
      const { codecs } = RTCRtpReceiver.getCapabilities("video");
      const wanted = codecs.filter(({ mimeType }) => mimeType === `video/${codec}`);
      if (wanted.length === 0) throw new Error(`this browser has no ${codec}`);
      // Firefox keeps the feedback lines of omitted codecs, so there the others follow.
      const others = navigator.userAgent.includes("Firefox")
        ? codecs.filter((one) => !wanted.includes(one))
        : codecs.filter(({ mimeType }) => mimeType === "video/rtx");
      transceiver.setCodecPreferences([...wanted, ...others]);
    }
  }

  // Times of the first source's beeps, by the wall clock and by its audio clock.
  clocks() {
    return this.sources[0].clocks;
  }

  // Changes the parameters of each encoding, lowest first, as RTCRtpEncodingParameters.
  async change(...encodings) {
    for (const sender of this.connection.getSenders()) {
      if (sender.track?.kind !== "video") continue;
      const parameters = sender.getParameters();
      parameters.encodings.forEach((one, index) => Object.assign(one, encodings[index]));
      await sender.setParameters(parameters);
    }
  }

  // Sends the encodings with these rids, and no others.
  async encode(rids) {
    for (const sender of this.connection.getSenders()) {
      if (sender.track?.kind !== "video") continue;
      const parameters = sender.getParameters();
      for (const one of parameters.encodings) one.active = rids.includes(one.rid);
      await sender.setParameters(parameters);
    }
  }

  speak(on, sweep) {
    for (const source of this.sources) source.speak(on, sweep);
  }

  receive(slots) {
    for (const kind of ["audio", "video"]) {
      for (let slot = 0; slot < slots; slot++) {
        this.connection.addTransceiver(kind, { direction: "recvonly" });
      }
    }
  }

  // Has the browser hold what it receives for at least so long before it plays it.
  buffer(milliseconds) {
    for (const receiver of this.connection.getReceivers()) {
      receiver.jitterBufferTarget = milliseconds;
    }
  }

  // At random adds, ends or redirects an m-line after the first `kept`, or restarts ICE.
  stir(kept) {
    const all = this.connection.getTransceivers().slice(kept);
    const lines = all.filter(({ direction }) => direction !== "stopped");
    const line = lines[Math.floor(Math.random() * lines.length)];
    const chance = Math.random();
    if (!line || (chance < 0.4 && lines.length < 8)) {
      const kind = Math.random() < 0.5 ? "audio" : "video";
      this.connection.addTransceiver(kind, { direction: "recvonly" });
    } else if (chance < 0.7) {
      line.stop();
    } else if (chance < 0.95) {
      line.direction = line.direction === "recvonly" ? "inactive" : "recvonly";
    } else {
      this.connection.restartIce();
    }
  }

  async gathered() {
    while (this.connection.iceGatheringState !== "complete") {
      await new Promise((done) =>
        this.connection.addEventListener("icegatheringstatechange", done, { once: true }),
      );
    }
    return this.connection.localDescription.sdp;
  }

  async offer() {
    await this.connection.setLocalDescription(await this.connection.createOffer());
    return this.gathered();
  }

  async answer(sdp) {
    await this.connection.setRemoteDescription({ type: "offer", sdp });
    await this.connection.setLocalDescription(await this.connection.createAnswer());
    return this.gathered();
  }

  async accept(sdp) {
    await this.connection.setRemoteDescription({ type: "answer", sdp });
  }

  restartIce() {
    this.connection.restartIce();
  }

  frames(mid, since) {
    const frames = this.pictures.get(mid)?.frames ?? [];
    return frames.filter(([time]) => time >= since);
  }

  sounds(mid, since) {
    const sounds = this.ears.get(mid)?.sounds ?? [];
    return sounds.filter(([time]) => time >= since);
  }

  // Every inbound-rtp and outbound-rtp report, with the name of its codec and the round trip that
  // the far side's reports show.
  async stats() {
    const report = await this.connection.getStats();
    const flows = { in: [], out: [] };
    for (const entry of report.values()) {
      const direction = { "inbound-rtp": "in", "outbound-rtp": "out" }[entry.type];
      if (!direction) continue;
      const codec = report.get(entry.codecId)?.mimeType ?? "";
      const { roundTripTime } = report.get(entry.remoteId) ?? {};
      flows[direction].push({ ...entry, codec, roundTripTime });
    }
    const available = this.selectedPair(report)?.availableOutgoingBitrate;
    return { connection: this.connection.connectionState, available, ...flows };
  }

  selectedPair(report) {
    for (const entry of report.values()) {
      const pair = report.get(entry.selectedCandidatePairId);
      if (entry.type === "transport" && pair) return pair;
    }
    return null;
  }

  // The protocol of the selected candidate pair, by each side's candidate; of a relayed one also
  // how the browser reaches the relay: udp, tcp or tls.
  async path() {
    const report = await this.connection.getStats();
    const pair = this.selectedPair(report);
    if (!pair) return null;
    const [local, remote] = [pair.localCandidateId, pair.remoteCandidateId].map((id) =>
      report.get(id),
    );
    const { candidateType: type, relayProtocol: relay = null } = local;
    return { local: local.protocol, remote: remote.protocol, port: remote.port, type, relay };
  }

  close() {
    this.connection.close();
    this.sources.forEach((source) => source.stop());
    this.ears.forEach((ear) => ear.stop());
  }
}

window.peer = new Peer();
