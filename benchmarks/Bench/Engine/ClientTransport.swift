import LoadPeer
import RTP
import SFU

/// One client's transport: a WebRTC peer, or a bare address towards a floor.
struct ClientTransport: ~Copyable {
    var peer: LoadPeer
    private(set) var isConnected = false
    /// SRTP overhead of a packet, in bytes.
    ///
    /// Plain packets carry as many zeros instead, so that sizes are equal.
    let overhead: Int
    let isPlaintext: Bool

    init(_ peer: consuming LoadPeer, isPlaintext: Bool, overhead: Int) {
        self.peer = peer
        self.isPlaintext = isPlaintext
        self.overhead = overhead
        isConnected = isPlaintext
    }

    mutating func receive(
        _ datagram: Span<UInt8>,
        at now: Instant,
        into output: inout Batch
    ) -> LoadPeer.Received {
        guard !isPlaintext else { return .nothing }
        let received = peer.receive(datagram, at: now, into: &output)
        if received == .connected { isConnected = true }
        return received
    }

    /// Queues a whole RTP packet; `index` is its extended sequence number (RFC 3711 §3.3.1).
    mutating func sendRTP(_ clear: Span<UInt8>, index: UInt64, into output: inout Batch) {
        guard output.free > 0 else { return }
        guard isPlaintext else { return peer.sendRTP(clear, index: index, into: &output) }
        let tag = overhead
        output.append(to: peer.path) { bytes in
            for position in clear.indices { bytes.append(clear[position]) }
            bytes.append(repeating: 0, count: tag)
        }
    }

    mutating func sendRTCP(
        into output: inout Batch,
        _ fill: (inout OutputSpan<UInt8>) -> Void
    ) {
        guard !isPlaintext, output.free > 0 else { return }
        peer.sendRTCP(into: &output, fill)
    }
}
