// What sfud's `subscription.explain` means, in the words of people who watch.

import { bitrateText } from "./stats.js";

/** A freeze counts for the bars as long as this, in seconds. */
const RECENT_SECONDS = 20;

/** Freezes by their hop: why a picture stood still. */
const FREEZES = {
  "publisher-uplink": (name) => `${name}’s connection lost packets`,
  "publisher-encoder": (name) => `${name}’s device sent no picture`,
  sfu: () => "the server was too busy",
  "viewer-downlink": () => "your connection lost packets",
  "viewer-decoder": () => "your device could not keep up",
};

/** What the bars are called, from none to all. */
const BARS = ["no picture", "poor", "fair", "good", "very good"];

const sizeText = ({ width, height }) => `${width}×${height}`;
const pixels = ({ width = 0, height = 0 } = {}) => width * height;

/**
 * Reads an explanation of the picture of `name`: `{bars, label, title, text, more}`: 0 to 4 bars, a
 * name for the button, a heading, the answer to why it is not sharper, and further lines.
 */
export function read(explanation, name, now = Date.now() / 1000) {
  const { sent, offered = [], limit, estimate, needed, retryAt, freezes } = explanation;
  const best = offered.reduce((most, it) => (pixels(it) > pixels(most) ? it : most), {});
  const frozen = freezes?.recent?.at(-1);
  const froze = frozen && (frozen.ongoing || now - frozen.time - frozen.seconds < RECENT_SECONDS);
  const bars = barsFor({ sent, best, limit, froze });
  const more = [];
  if (sent?.width) more.push(`You receive ${sizeText(sent)} with ${bitrateText(sent.bitrate)}.`);
  if (pixels(best) > pixels(sent ?? {})) more.push(`${name} sends up to ${sizeText(best)}.`);
  if (froze) {
    const cause = FREEZES[frozen.hop]?.(name) ?? "nobody knows why";
    more.push(frozen.ongoing
      ? `It stands still: ${cause}.`
      : `It stood still for ${frozen.seconds.toFixed(1)} s a moment ago: ${cause}.`);
  }
  return {
    bars, label: `Picture: ${BARS[bars]}`,
    title: bars === 0 ? `Why is there no picture of ${name}?` : limit === "none"
      ? `${name}’s picture is as sharp as it gets` : `Why is ${name}’s picture not sharper?`,
    text: reason({ name, sent, limit, estimate, needed, retryAt, now }), more,
  };
}

/** Only what is amiss takes bars away: a small tile needs no large picture. */
function barsFor({ sent, best, limit, froze }) {
  if (!sent?.width) return 0;
  const share = pixels(best) ? pixels(sent) / pixels(best) : 1;
  const isShort = limit === "bandwidth" || limit === "overload";
  const bars = !isShort ? 4 : share < 0.1 ? 1 : share < 0.5 ? 2 : 3;
  return froze ? Math.min(bars, 2) : bars;
}

function reason({ name, sent, limit, estimate, needed, retryAt, now }) {
  switch (limit) {
    case "bandwidth": {
      const has = estimate ? ` It carries about ${bitrateText(estimate)} for all pictures together` : "";
      const wants = has && needed ? `; a sharper one of ${name} takes about ${bitrateText(needed)}` : "";
      const again = retryAt > now ? " It is tried again by itself." : "";
      return `Your connection is too slow for a sharper picture.${has}${wants}${has && "."}${again}`;
    }
    case "preference":
      return "It is as sharp as a picture of this size needs. Enlarge it, and it becomes sharper.";
    case "publisher":
      return sent
        ? `${name} sends no sharper picture now: perhaps the connection or the device there is slow.`
        : `${name} sends no picture now.`;
    case "muted":
      return sent ? "A moderator has muted it." : "A moderator has switched this camera off.";
    case "subscriber":
      return "This page has switched it off, because it is not shown.";
    case "codec":
      return `Your browser cannot show the format in which ${name} sends.`;
    case "role":
      return "In your role you receive no sharper picture.";
    case "overload":
      return "The server is very busy, and sends smaller pictures for the moment.";
    case "approval":
      return "You see it once you have been let in.";
    default:
      return `It is the sharpest that ${name} sends.`;
  }
}
