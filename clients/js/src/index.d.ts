// Types of sfud-client.

export type Source = "microphone" | "camera" | "screen";
export type View = "all" | "talkers" | "heard" | "chosen";
export type CallState = "idle" | "joining" | "awaited" | "joined" | "reconnecting" | "left";
export type Mode = "SEND_AND_RECV" | "RECV_ONLY" | "SIGNALLING_ONLY";

/** A failure: `reason` is a stable word, `code` the number of sfud's error where there is one. */
export class CallError extends Error {
  constructor(what: { reason: string; message: string; code?: number });
  readonly reason: string;
  readonly code: number | null;
}

/** A WebSocket, or anything like it; without a `readyState` it is open from the start. */
export interface Transport {
  readonly readyState?: number;
  onopen?: ((event: any) => void) | null;
  onmessage?: ((event: any) => void) | null;
  onclose?: ((event: any) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

/** A function is called again after each break, or when a request finds the transport dead; without
 *  one a break is final. */
export type TransportSource = Transport | (() => Transport | Promise<Transport>);

/** Requests with replies over a transport. Dispatches `open`, `close` and `message`. */
export class Signalling extends EventTarget {
  constructor(transport: TransportSource);
  readonly isOpen: boolean;
  opened(): Promise<void>;
  /** Rejects with `CallError`. */
  request(type: string, fields?: object): Promise<any>;
  close(): void;
}

export interface EncryptionOptions {
  /** The key of this id (0 to 255): 16 or 32 bytes, or `null` as long as there is none. */
  key(id: number): CryptoKey | BufferSource | null | Promise<CryptoKey | BufferSource | null>;
  /** The id of the key to encrypt with at first; 0 by default. */
  id?: number;
}

export interface CallOptions {
  room: string;
  name: string;
  /** This or `signalling`. */
  transport?: TransportSource;
  /** Outlives the call. */
  signalling?: Signalling;
  role?: string;
  mode?: Mode;
  settings?: { mode?: string; knock?: boolean };
  /** `key` of an earlier call. */
  key?: string | null;
  /** An invitation. */
  token?: string | null;
  view?: View;
  /** Preferred for video, such as `vp9`. */
  codec?: string | null;
  rtc?: RTCConfiguration;
  encryption?: EncryptionOptions;
}

export interface Participant {
  participant: string;
  name: string;
  role: string;
  mode: Mode;
  connection: string;
  hardMuted: string[];
}

export interface StreamInfo {
  stream: string;
  participant: string;
  source?: string;
  audio?: { enabled?: boolean };
  video?: { enabled?: boolean };
}

export interface Talker {
  participant: string;
  stream?: string;
  talking: boolean;
  pinned: boolean;
}

/** The room as sfud's events have left it. */
export class RoomState {
  participants: Map<string, Participant>;
  awaited: Map<string, Participant>;
  raisedHands: string[];
  holder: string | null;
  pins: string[];
  talkers: Talker[];
  locked: boolean;
  hardMuted: boolean;
  recording: boolean;
  streaming: boolean;
  state: string;
  settings: any;
  readonly self: Participant;
  readonly isModerator: boolean;
  readonly isLive: boolean;
  readonly hasMessages: boolean;
  readonly hasTransport: boolean;
  readonly floor: "none" | "raised" | "held" | null;
  may(permission: string): boolean;
  mayOffer(kind: "audio" | "video" | "screen"): boolean;
  isMuted(kind: "audio" | "video"): boolean;
  nameOf(participant: string): string;
}

export interface Received {
  mid: string | null;
  kind: "audio" | "video";
  codec: string | null;
  stream: string | null;
  participant: string | null;
  source: string | null;
  width: number;
  height: number;
  frameRate: number;
  /** Bits a second. */
  bitrate: number;
  /** Percent since the last sample. */
  loss: number;
  /** Seconds. */
  jitter: number;
  framesDecoded: number;
  freezeCount: number;
  packetsReceived: number;
  packetsLost: number;
  audioEnergy: number;
  /** The result of `subscription.explain`. */
  explanation?: any;
  [counter: string]: unknown;
}

export interface Sent {
  mid: string | null;
  rid: string | null;
  kind: "audio" | "video";
  codec: string | null;
  label: Source | "screen-audio" | null;
  width: number;
  height: number;
  frameRate: number;
  bitrate: number;
  loss: number;
  framesEncoded: number;
  packetsSent: number;
  bytesSent: number;
  limitation: string | null;
}

export interface Statistics {
  /** Milliseconds since 1970. */
  time: number;
  /** Seconds. */
  roundTrip: number | null;
  connection: RTCPeerConnectionState;
  received: Received[];
  sent: Sent[];
}

export interface CallEvents {
  change: Event;
  joined: CustomEvent<{ resumed: boolean }>;
  ended: CustomEvent<{ reason: string; message: string }>;
  problem: CustomEvent<(CallError & { waiting: boolean }) | null>;
  event: CustomEvent<{ event: string; data: any }>;
  message: CustomEvent<{
    number: number; topic: string; message: string; payload?: any; from?: string;
    /** Seconds since 1970. */
    time?: number;
  }>;
  trackended: CustomEvent<{ source: Source }>;
}

export interface Screen {
  video: MediaStreamTrack;
  audio: MediaStreamTrack | null;
}

export interface DeviceOptions {
  /** A device id of `listDevices()`. */
  device?: string;
  size?: { width: number; height: number };
}

/** One participant's call. All promises reject with `CallError`. */
export class Call extends EventTarget {
  constructor(options: CallOptions);
  readonly state: CallState;
  readonly room: string;
  readonly name: string;
  /** Our participant's id. */
  readonly me: string | null;
  /** With it a later call resumes our standing. */
  readonly key: string | null;
  readonly view: View;
  readonly roomState: RoomState;
  readonly participants: Map<string, Participant>;
  readonly streams: Map<string, StreamInfo>;
  readonly local: { audio: MediaStreamTrack | null; video: MediaStreamTrack | null };
  readonly screen: Screen | null;

  connect(tracks?: { audio?: MediaStreamTrack | null; video?: MediaStreamTrack | null }): Promise<void>;
  close(): Promise<void>;

  publish(source: "screen", media: Screen, options?: { encodings?: RTCRtpEncodingParameters[] }):
    Promise<string | null>;
  publish(source: "microphone" | "camera", track: MediaStreamTrack,
    options?: { encodings?: RTCRtpEncodingParameters[] }): Promise<string | null>;
  unpublish(source: Source): Promise<void>;
  /** Opens a device or a screen and publishes it. */
  open(source: Source, options?: DeviceOptions): Promise<string | null>;
  mute(source: "microphone" | "camera"): Promise<void>;
  unmute(source: "microphone" | "camera"): Promise<void>;

  show(view: View): Promise<void>;
  subscribe(stream: string, kinds?: { audio?: boolean; video?: boolean }): Promise<void>;
  unsubscribe(stream: string): Promise<void>;
  set(streams: (string | { stream: string; audio?: boolean; video?: boolean })[],
    options?: { view?: View }): Promise<void>;
  tracks(stream: string): { audio: MediaStreamTrack | null; video: MediaStreamTrack | null };
  /** The element shows this stream from now on; with `null` none any more. */
  watchSize(element: Element, stream: string | null): void;
  prefer(stream: string, width: number, height: number): Promise<void>;

  statistics(options?: { explain?: boolean }): Promise<Statistics | null>;
  explain(stream: string): Promise<any>;
  restartIce(): Promise<void>;
  /** Goes over to a new connection to sfud, made before the present one ends. */
  move(): Promise<void>;
  useKey(id: number): void;
  encryptionCounts(): Promise<
    { sealed: number; opened: number; refused: number; withoutKey: number } | null>;
  /** A request of the signalling server, such as `room.lock`. */
  request(type: string, fields?: object): Promise<any>;

  addEventListener<K extends keyof CallEvents>(
    type: K, listener: (event: CallEvents[K]) => void, options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string, listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

export const MODERATOR: "moderator";
export const SCREEN_ENCODINGS: RTCRtpEncodingParameters[];
export function cameraEncodings(track: MediaStreamTrack): RTCRtpEncodingParameters[];
export function listDevices(): Promise<
  Record<"microphone" | "camera" | "speaker", { id: string; label: string }[]>>;
export function openDevice(source: "microphone" | "camera", options?: DeviceOptions):
  Promise<MediaStreamTrack>;
export function openScreen(): Promise<Screen>;
