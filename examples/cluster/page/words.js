// Figures and states in words.

export const STATES = {
  up: "up", draining: "draining", starting: "starting", stopped: "stopped", lost: "lost",
};

export const isOff = (node) => ["stopped", "lost", "starting"].includes(node.state);

export function rate(bits) {
  if (!bits) return "silent";
  return bits < 100_000 ? `${Math.round(bits / 1000)} kbit/s` : `${(bits / 1e6).toFixed(1)} Mbit/s`;
}

export function listed(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

export const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** What a stream's part is called: its source and kind. */
export function medium({ source, kind }) {
  if (source === "screen") return kind === "audio" ? "screen’s sound" : "screen";
  return kind === "audio" ? "microphone" : "camera";
}

export function initials(name) {
  const parts = name.trim().split(/\s+/);
  const letters = parts.length > 1 ? parts[0][0] + parts.at(-1)[0] : name.trim().slice(0, 2);
  return letters.toUpperCase();
}
