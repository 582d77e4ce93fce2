/// Datagrams that waited for a socket, or should have, and did not leave; by cause and content.
package struct SendDrops: Hashable, Sendable {
    package enum Cause: String, CaseIterable, Hashable, Sendable {
        /// The queue had no room.
        case full
        /// They waited for so long that nobody wants them any more.
        case stale
        /// The right under which they were forwarded was taken away meanwhile.
        case withdrawn
    }

    private var counts = [UInt64](
        repeating: 0,
        count: Cause.allCases.count * DatagramContent.allCases.count
    )

    package init() {}

    package subscript(cause: Cause, content: DatagramContent) -> UInt64 {
        get { counts[Self.index(cause, content)] }
        set { counts[Self.index(cause, content)] = newValue }
    }

    /// Of one cause, whatever they were.
    package func sum(_ cause: Cause) -> UInt64 {
        DatagramContent.allCases.reduce(0) { $0 &+ self[cause, $1] }
    }

    package static func += (sum: inout Self, other: Self) {
        for index in sum.counts.indices { sum.counts[index] &+= other.counts[index] }
    }

    private static func index(_ cause: Cause, _ content: DatagramContent) -> Int {
        let row =
            switch cause {
            case .full: 0
            case .stale: 1
            case .withdrawn: 2
            }
        return row * DatagramContent.allCases.count + Int(content.rawValue)
    }
}

/// What a datagram is, for who has to choose when not all can be sent.
package enum DatagramContent: UInt8, BitwiseCopyable, Sendable {
    /// Signalling of the transport itself: STUN, DTLS, RTCP.
    case other
    case audio
    case video
}

extension DatagramContent: CaseIterable {
    package static let allCases: [Self] = [.other, .audio, .video]

    /// As metrics name it.
    package var name: String {
        switch self {
        case .other: "other"
        case .audio: "audio"
        case .video: "video"
        }
    }
}
