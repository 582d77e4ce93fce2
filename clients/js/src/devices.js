// Cameras, microphones and screens.

import { CallError } from "./errors.js";

const SIZE = { width: 1280, height: 720 };
const SOUND = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** The errors of `getUserMedia`, as reasons. */
const REASONS = {
  NotAllowedError: "not-allowed", SecurityError: "not-allowed", NotFoundError: "no-device",
  OverconstrainedError: "no-device", NotReadableError: "device-busy", AbortError: "device-busy",
};

/** Opens a `microphone` or a `camera`, a certain one by `device`. Rejects with `CallError`. */
export async function openDevice(source, { device, size = SIZE } = {}) {
  const chosen = device ? { deviceId: { exact: device } } : {};
  const picture = {
    width: { ideal: size.width }, height: { ideal: size.height }, frameRate: { ideal: 30 }, ...chosen,
  };
  const stream = await open("getUserMedia", source === "camera"
    ? { video: picture } : { audio: { ...SOUND, ...chosen } });
  return stream.getTracks()[0];
}

/** Asks for a screen, a window or a tab: `{video, audio}`. Rejects with `CallError`. */
export async function openScreen() {
  const wish = { video: { frameRate: { ideal: 15, max: 30 } }, audio: true };
  const stream = await open("getDisplayMedia", wish);
  const [video, audio = null] = [...stream.getVideoTracks(), ...stream.getAudioTracks()];
  video.contentHint = "detail"; // text stays sharp; the frame rate gives way first
  return { video, audio };
}

/** The present devices: `{microphone, camera, speaker}`, each a list of `{id, label}`. */
export async function listDevices() {
  const kinds = { microphone: "audioinput", camera: "videoinput", speaker: "audiooutput" };
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [
    name,
    all.filter((it) => it.kind === kind).map(({ deviceId, label }) => ({ id: deviceId, label })),
  ]));
}

async function open(method, wish) {
  if (!navigator.mediaDevices?.[method]) {
    const message = "browsers give devices to HTTPS pages and to localhost only";
    throw new CallError({ reason: "insecure-page", message });
  }
  try {
    return await navigator.mediaDevices[method](wish);
  } catch (error) {
    throw new CallError({ reason: REASONS[error.name] ?? "device-failed", message: error.message });
  }
}
