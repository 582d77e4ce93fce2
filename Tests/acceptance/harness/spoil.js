// Lets a test break what a viewer decodes: while `window.spoil.on`, received frames of video reach
// the decoder as rubbish, although each packet has arrived. Call it before anything is received.
window.spoil = { on: false };
peer.connection.close();
peer = new Peer({ encodedInsertableStreams: true });
const add = peer.connection.addTransceiver.bind(peer.connection);
peer.connection.addTransceiver = (...what) => {
  const transceiver = add(...what);
  const { readable, writable } = transceiver.receiver.createEncodedStreams();
  const spoil = (frame, controller) => {
    if (window.spoil.on && frame.type !== undefined) {
      frame.data = new Uint8Array(frame.data.byteLength).fill(0xff).buffer;
    }
    controller.enqueue(frame);
  };
  readable.pipeThrough(new TransformStream({ transform: spoil })).pipeTo(writable);
  const sent = transceiver.sender.createEncodedStreams();
  sent.readable.pipeTo(sent.writable);
  return transceiver;
};
