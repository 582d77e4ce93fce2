// Cameras and microphones, and messages to people when there are none.

const SIZE = { width: 1280, height: 720 };

/**
 * Requests the camera and the microphone, as selected; those of the `ids`, if they are there.
 *
 * Returns `{audio, video, problem}`: the granted tracks, and the error in words.
 */
export async function openDevices({ audio = true, video = true, size = SIZE, ids = {} }) {
  const nothing = { audio: null, video: null, problem: null };
  if (!audio && !video) return nothing;
  if (!navigator.mediaDevices) {
    return { ...nothing, problem: "Browsers give the camera and the microphone to HTTPS pages and "
      + "to localhost only. You can watch and listen." };
  }
  const device = (kind) => (ids[kind] ? { deviceId: { exact: ids[kind] } } : {});
  const wish = {
    audio: audio && {
      echoCancellation: true, noiseSuppression: true, autoGainControl: true, ...device("audio"),
    },
    video: video && {
      ...device("video"),
      width: { ideal: size.width }, height: { ideal: size.height }, frameRate: { ideal: 30 },
    },
  };
  const names = { audio: "microphone", video: "camera" };
  const kinds = Object.keys(names).filter((kind) => wish[kind]);
  try {
    return { ...tracks(await navigator.mediaDevices.getUserMedia(wish)), problem: null };
  } catch (error) {
    if (Object.values(ids).some(Boolean)) return openDevices({ audio, video, size }); // one is gone
    if (kinds.length === 1) return { ...nothing, problem: explain(error.name, [names[kinds[0]]]) };
  }
  // One of the two may be missing or blocked: use the other.
  const found = { ...nothing };
  const failed = new Map(); // the error's name → the devices that failed with it
  for (const kind of kinds) {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ [kind]: wish[kind] });
      found[kind] = tracks(stream)[kind];
    } catch (error) {
      failed.set(error.name, [...(failed.get(error.name) ?? []), names[kind]]);
    }
  }
  const problem = [...failed].map(([name, devices]) => explain(name, devices)).join(" ");
  return { ...found, problem: problem || null };
}

function tracks(stream) {
  return { audio: stream.getAudioTracks()[0] ?? null, video: stream.getVideoTracks()[0] ?? null };
}

function explain(errorName, devices) {
  const both = devices.join(" and ");
  switch (errorName) {
    case "NotAllowedError":
    case "SecurityError":
      return `This page may not use your ${both}. Allow it beside the address bar, then switch `
        + "it on below.";
    case "NotFoundError":
    case "OverconstrainedError":
      return `No ${devices.join(" and no ")} was found.`;
    case "NotReadableError":
    case "AbortError":
      return `Another program uses your ${both}.`;
    default:
      return `Your ${both} cannot be opened (${errorName}).`;
  }
}
