// The worker that encrypts sent frames and decrypts received ones, end to end (AES-GCM).
//
// A sealed frame: the clear bytes · ciphertext with its tag · 8 random bytes of the sender ·
// a counter of 4 bytes · the key's id of 1 byte. The first 12 of the trailer are the nonce. The
// clear bytes show a server which kind of frame it is; they are authenticated.

const [TRAILER, NONCE] = [13, 12];
const MOST_COUNT = 0xffff_ffff; // frames of one nonce prefix

const keys = new Map(); // id → CryptoKey
const asked = new Set();
const counts = { sealed: 0, opened: 0, refused: 0, withoutKey: 0 };
let current = 0; // id of the key to seal with

/** As in WebRTC's samples: the header of a VP8 keyframe, that of another, Opus's TOC byte. */
function clearBytes({ type }) {
  return type === undefined ? 1 : type === "key" ? 10 : 3;
}

function sealer() {
  let prefix = crypto.getRandomValues(new Uint8Array(8));
  let count = 0;
  return async (frame, controller) => {
    const id = current;
    const key = keyOf(id);
    if (!key) return void counts.withoutKey++; // nothing leaves in clear
    if (count === MOST_COUNT) [prefix, count] = [crypto.getRandomValues(new Uint8Array(8)), 0];
    const trailer = new Uint8Array(TRAILER);
    trailer.set(prefix);
    new DataView(trailer.buffer).setUint32(8, count++);
    trailer[NONCE] = id;
    const bytes = new Uint8Array(frame.data);
    const clear = bytes.slice(0, clearBytes(frame));
    const how = { name: "AES-GCM", iv: trailer.slice(0, NONCE), additionalData: clear };
    const sealed = new Uint8Array(await crypto.subtle.encrypt(how, key, bytes.subarray(clear.length)));
    const all = new Uint8Array(clear.length + sealed.length + TRAILER);
    all.set(clear);
    all.set(sealed, clear.length);
    all.set(trailer, clear.length + sealed.length);
    frame.data = all.buffer;
    counts.sealed++;
    controller.enqueue(frame);
  };
}

async function open(frame, controller) {
  const bytes = new Uint8Array(frame.data);
  const clear = bytes.slice(0, clearBytes(frame));
  const end = bytes.length - TRAILER;
  if (end < clear.length) return void counts.refused++;
  const key = keyOf(bytes[end + NONCE]);
  if (!key) return void counts.withoutKey++;
  const how = { name: "AES-GCM", iv: bytes.slice(end, end + NONCE), additionalData: clear };
  try {
    const plain = await crypto.subtle.decrypt(how, key, bytes.subarray(clear.length, end));
    const all = new Uint8Array(clear.length + plain.byteLength);
    all.set(clear);
    all.set(new Uint8Array(plain), clear.length);
    frame.data = all.buffer;
    counts.opened++;
    controller.enqueue(frame);
  } catch {
    counts.refused++;
  }
}

function keyOf(id) {
  const key = keys.get(id);
  if (!key && !asked.has(id)) {
    asked.add(id);
    postMessage({ wants: id });
  }
  return key;
}

function pipe({ readable, writable, direction }) {
  const transform = direction === "send" ? sealer() : open;
  readable.pipeThrough(new TransformStream({ transform })).pipeTo(writable).catch(() => {});
}

self.onrtctransform = ({ transformer: { readable, writable, options } }) =>
  pipe({ readable, writable, direction: options.direction });

self.onmessage = ({ data }) => {
  if (data.direction) pipe(data);
  if (data.use !== undefined) current = data.use;
  if (data.key) keys.set(data.id, data.key);
  if (data.key === null) asked.delete(data.id); // it may be asked for again
  if (data.count) postMessage({ counts });
};
