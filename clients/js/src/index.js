// A client of sfud for browsers; README.md has the messages that it exchanges with its server.

export { Call } from "./call.js";
export { CallError } from "./errors.js";
export { listDevices, openDevice, openScreen } from "./devices.js";
export { cameraEncodings, SCREEN_ENCODINGS } from "./encodings.js";
export { MODERATOR, RoomState } from "./roomstate.js";
export { Signalling } from "./signalling.js";
