// Encrypts sent frames and decrypts received ones end to end, like pages that trust no server. The
// first bytes of a frame, which show its kind, stay in clear. The cipher is a toy, but each frame
// ends with a checksum over all its bytes, so an altered frame is detected. Call it before anything
// is published or received.
window.seal = (key) => {
  const counts = { opened: 0, refused: 0 };

  // Runs in the page or in a worker, so it uses only its arguments.
  const cipher = (direction, key, counts) => {
    // As in WebRTC's samples: the header of a VP8 keyframe, that of another frame, Opus's TOC byte.
    const clearBytes = ({ type }) => (type === undefined ? 1 : type === "key" ? 10 : 3);
    const sumOf = (bytes) => {
      let sum = 0x811c9dc5 ^ key;
      for (const byte of bytes) sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
      return sum >>> 0;
    };
    const cover = (bytes, clear) => {
      let state = key;
      for (let at = clear; at < bytes.length; at++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        bytes[at] ^= state >>> 24;
      }
    };
    const seal = (frame, controller) => {
      const bytes = new Uint8Array(frame.data.byteLength + 4);
      const body = bytes.subarray(0, frame.data.byteLength);
      body.set(new Uint8Array(frame.data));
      new DataView(bytes.buffer).setUint32(body.length, sumOf(body));
      cover(body, clearBytes(frame));
      frame.data = bytes.buffer;
      controller.enqueue(frame);
    };
    const open = (frame, controller) => {
      const length = Math.max(frame.data.byteLength - 4, 0);
      const body = new Uint8Array(frame.data.slice(0, length));
      cover(body, clearBytes(frame));
      if (length === 0 || sumOf(body) !== new DataView(frame.data).getUint32(length)) {
        counts.refused++;
        return;
      }
      frame.data = body.buffer;
      counts.opened++;
      controller.enqueue(frame);
    };
    return new TransformStream({ transform: direction === "send" ? seal : open });
  };

  let apply;
  if ("createEncodedStreams" in RTCRtpSender.prototype) {
    peer.connection.close();
    peer = new Peer({ encodedInsertableStreams: true });
    apply = (end, direction) => {
      const { readable, writable } = end.createEncodedStreams();
      readable.pipeThrough(cipher(direction, key, counts)).pipeTo(writable);
    };
  } else {
    const source = `onrtctransform = ({ transformer: { readable, writable, options } }) =>
      readable.pipeThrough((${cipher})(options.direction, options.key, {})).pipeTo(writable);`;
    const worker = new Worker(URL.createObjectURL(new Blob([source])));
    apply = (end, direction) => {
      end.transform = new RTCRtpScriptTransform(worker, { direction, key });
    };
  }
  const add = peer.connection.addTransceiver.bind(peer.connection);
  peer.connection.addTransceiver = (...what) => {
    const transceiver = add(...what);
    apply(transceiver.sender, "send");
    apply(transceiver.receiver, "receive");
    return transceiver;
  };
  // Results for the frames; only in the page, not in a worker.
  window.sealed = () => counts;
};
