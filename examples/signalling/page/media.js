// Cameras, microphones and screens, and what to tell people when there are none.

const SIZE = { width: 1280, height: 720 };

/** From this many pixels on, browsers send all three simulcast layers. */
const SIMULCAST_PIXELS = 960 * 540;

/**
 * Asks for the camera and the microphone, as far as they are wanted.
 *
 * Returns `{audio, video, problem}`: the tracks that were granted, and what went wrong in words.
 */
export async function openDevices({ audio = true, video = true, size = SIZE }) {
  const nothing = { audio: null, video: null, problem: null };
  if (!audio && !video) return nothing;
  if (!navigator.mediaDevices) {
    return { ...nothing, problem: "Browsers give the camera and the microphone to HTTPS pages and "
      + "to localhost only. You can watch and listen." };
  }
  const wish = {
    audio: audio && { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    video: video && {
      width: { ideal: size.width }, height: { ideal: size.height }, frameRate: { ideal: 30 },
    },
  };
  try {
    return { ...tracks(await navigator.mediaDevices.getUserMedia(wish)), problem: null };
  } catch (error) {
    if (!(audio && video)) return { ...nothing, problem: explain(error, audio ? "microphone" : "camera") };
  }
  // One of the two may be missing or blocked: take what there is.
  const problems = [];
  const found = { ...nothing };
  for (const [kind, name] of [["audio", "microphone"], ["video", "camera"]]) {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ [kind]: wish[kind] });
      Object.assign(found, { [kind]: tracks(stream)[kind] });
    } catch (error) {
      problems.push(explain(error, name));
    }
  }
  return { ...found, problem: problems.join(" ") };
}

/** Asks for a screen, window or tab. Returns `{audio, video}`, or `null` where one is not given. */
export async function openScreen() {
  const wish = { video: { frameRate: { ideal: 15, max: 30 } }, audio: true };
  let stream;
  try {
    stream = await navigator.mediaDevices.getDisplayMedia(wish);
  } catch (error) {
    if (error.name === "NotAllowedError") return null; // closed the browser's own dialog
    throw error;
  }
  const screen = tracks(stream);
  screen.video.contentHint = "detail"; // text stays sharp; the frame rate gives way first
  return screen;
}

/** How a camera is sent: three layers where it is large enough, else one. */
export function cameraEncodings(track) {
  const { width = 0, height = 0 } = track.getSettings();
  if (width * height < SIMULCAST_PIXELS) return [{ maxBitrate: 1_500_000 }];
  return [
    { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
    { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000 },
    { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 1_700_000 },
  ];
}

function tracks(stream) {
  return { audio: stream.getAudioTracks()[0] ?? null, video: stream.getVideoTracks()[0] ?? null };
}

function explain(error, name) {
  switch (error.name) {
    case "NotAllowedError":
    case "SecurityError":
      return `The ${name} is blocked for this page: allow it beside the address bar, then reload.`;
    case "NotFoundError":
    case "OverconstrainedError":
      return `No ${name} was found.`;
    case "NotReadableError":
    case "AbortError":
      return `The ${name} is in use by another program.`;
    default:
      return `The ${name} cannot be opened (${error.name}).`;
  }
}
