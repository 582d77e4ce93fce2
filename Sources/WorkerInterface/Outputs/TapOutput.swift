package import RTP

/// Where a stream goes as plain RTP, for other tools.
package struct TapOutput: Hashable, Sendable {
    /// The stream's audio, or its video.
    package struct Line: Hashable, Sendable {
        package var kind: MediaKind
        /// Where RTP goes; RTCP goes to the port above (RFC 3550 §11).
        package var address: Address
        /// The only one that goes out here: receivers learn of it beforehand.
        package var codec: Codec
        package var ssrc: SSRC
        /// Of the first packet (RFC 3550 §5.1 wants both at random).
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

        /// One of the dynamic ones (RFC 3551 §6), the same for a codec always.
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
    /// Audio before video, one of each at most.
    package var lines: [Line]

    package init(stream: String, lines: [Line]) {
        self.stream = stream
        self.lines = lines
    }

    package func line(_ kind: MediaKind) -> Line? { lines.first { $0.kind == kind } }
}

/// What a stream's way out has come to.
package struct TapCounts: Hashable, Sendable {
    /// RTP packets that the system took.
    package var packets: UInt64 = 0
    /// Their bytes, RTP headers among them.
    package var bytes: UInt64 = 0
    /// Packets that the system did not take: the socket is full, or there is no route.
    package var dropped: UInt64 = 0
    /// Packets that came to nothing because nobody listens there.
    package var refused: UInt64 = 0

    package init() {}
}
