// Encodings of what is sent.

/** From this many pixels on, browsers send all three simulcast layers. */
const SIMULCAST_PIXELS = 960 * 540;

/** Encodings of a shared screen, which has one layer. */
export const SCREEN_ENCODINGS = [{ maxBitrate: 2_500_000 }];

/** Encodings of a camera: three layers if it is large enough, else one. */
export function cameraEncodings(track) {
  const { width = 0, height = 0 } = track.getSettings();
  if (width * height < SIMULCAST_PIXELS) return [{ maxBitrate: 1_500_000 }];
  return [
    { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
    { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000 },
    { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 1_700_000 },
  ];
}
