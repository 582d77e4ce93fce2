package import RTP

/// Destination of a stream as plain RTP, for other tools.
package struct RTPForwardTarget: Hashable, Sendable, Codable {
    /// Audio or video of the stream.
    package struct Line: Hashable, Sendable, Codable {
        package var kind: MediaKind
        /// Destination of RTP; RTCP goes to the port above (RFC 3550 §11).
        package var address: Address
        /// Only codec that is sent: receivers are told it beforehand.
        package var codec: Codec
        package var ssrc: SSRC
        /// Sequence number and timestamp of the first packet, random as RFC 3550 §5.1 asks.
        package var firstNumber: UInt16
        package var firstTimestamp: UInt32

        package init(
            kind: MediaKind,
            address: Address,
            codec: Codec,
            ssrc: SSRC,
            firstNumber: UInt16,
            firstTimestamp: UInt32
        ) {
            self.kind = kind
            self.address = address
            self.codec = codec
            self.ssrc = ssrc
            self.firstNumber = firstNumber
            self.firstTimestamp = firstTimestamp
        }

        /// Dynamic payload type (RFC 3551 §6), always the same for a codec.
        package var payloadType: UInt8 {
            switch codec {
            case .vp8: 96
            case .vp9: 98
            case .av1: 100
            case .h264: 102
            case .opus, .red: 111
            }
        }
    }

    package var stream: String
    /// Audio before video, at most one of each.
    package var lines: [Line]

    package init(stream: String, lines: [Line]) {
        self.stream = stream
        self.lines = lines
    }

    package func line(_ kind: MediaKind) -> Line? { lines.first { $0.kind == kind } }
}

/// Send counters of a stream's plain RTP output.
package struct RTPForwardCounts: Hashable, Sendable {
    /// RTP packets that the kernel accepted.
    package var packets: UInt64 = 0
    /// Bytes of those packets, including RTP headers.
    package var bytes: UInt64 = 0
    /// Packets that the kernel did not accept: the socket buffer is full, or there is no route.
    package var dropped: UInt64 = 0
    /// Packets refused by the destination: nothing listens on its port.
    package var refused: UInt64 = 0

    package init() {}
}
