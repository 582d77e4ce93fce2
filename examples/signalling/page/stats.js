// Lines of the overlay on a tile, from the statistics of the call.

/** A human-readable bit rate. */
export function bitrateText(bitsPerSecond) {
  return bitsPerSecond >= 1e6
    ? `${(bitsPerSecond / 1e6).toFixed(1)} Mbit/s`
    : `${Math.round(bitsPerSecond / 1e3)} kbit/s`;
}

/** Overlay lines for a tile's received media; either kind may be missing. */
function receivedLines(video, audio) {
  const lines = [];
  if (video?.width) lines.push(pictureText(video));
  if (video) lines.push(`${bitrateText(video.bitrate)} · loss ${video.loss.toFixed(1)} %`);
  if (audio) {
    lines.push(`${audio.codec ?? "audio"} ${bitrateText(audio.bitrate)} · loss ${audio.loss.toFixed(1)} %`);
  }
  return lines;
}

/** Overlay lines for a tile, from a sample of the call. */
export function overlay(sample, { self, screen, stream }) {
  if (self) {
    const labels = screen ? ["screen", "screen-audio"] : ["camera", "microphone"];
    return sentLines(sample.sent.filter((it) => labels.includes(it.label)), sample.roundTrip);
  }
  if (!stream) return [];
  const of = (kind) => sample.received.find((it) => it.kind === kind && it.stream === stream.stream);
  const video = of("video");
  const lines = receivedLines(video, of("audio"));
  return [...lines, ...(video?.explanation ? explainedLines(video.explanation) : [])];
}

const LIMITS = {
  none: "the best there is", preference: "enough for this tile", role: "a role allows no more",
  bandwidth: "your network carries no more", publisher: "no more is sent",
  muted: "muted by a moderator", subscriber: "switched off here", codec: "no codec in common",
  overload: "the server is overloaded", approval: "waits to be let in",
};

/** Overlay lines for the reason of the present layer: from sfud's `subscription.explain`. */
function explainedLines({ limit, estimate, needed }) {
  const lines = [LIMITS[limit] ?? limit];
  if (estimate !== undefined) {
    const more = needed ? ` · more from ${bitrateText(needed)}` : "";
    lines.push(`estimate ${bitrateText(estimate)}${more}`);
  }
  return lines;
}

/** Overlay lines for sent media: one for each active layer. */
function sentLines(reports, roundTrip) {
  const lines = reports
    .filter((it) => it.kind === "video" && it.bitrate > 0)
    .sort((a, b) => b.width - a.width)
    .map((it) => `${it.rid ? `${it.rid} ` : ""}${pictureText(it)} · ${bitrateText(it.bitrate)}`);
  const audio = reports.find((it) => it.kind === "audio");
  if (audio) lines.push(`${audio.codec ?? "audio"} ${bitrateText(audio.bitrate)}`);
  const loss = Math.max(0, ...reports.map((it) => it.loss));
  if (reports.length) lines.push(`loss ${loss.toFixed(1)} %${roundTripText(roundTrip)}`);
  return lines;
}

function pictureText({ width, height, frameRate, codec }) {
  return `${width}×${height} · ${Math.round(frameRate)} fps${codec ? ` · ${codec}` : ""}`;
}

function roundTripText(seconds) {
  return seconds === null ? "" : ` · round trip ${Math.round(seconds * 1000)} ms`;
}
