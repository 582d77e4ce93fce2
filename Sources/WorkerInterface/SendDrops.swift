/// Counters of outgoing datagrams that were dropped at a socket or in its queue, by cause and
/// content.
package struct SendDrops: Hashable, Sendable {
    package enum Cause: String, CaseIterable, Hashable, Sendable {
        /// The send queue was full.
        case full
        /// The datagram was queued for so long that it is of no use.
        case stale
        /// The right under which it was forwarded was revoked while it was queued.
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

    /// Returns the sum over all contents for one cause.
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

/// Kind of a datagram, to choose by when not all can be sent.
package enum DatagramContent: UInt8, BitwiseCopyable, Sendable {
    /// STUN, DTLS and RTCP: the signalling of the transport itself.
    case other
    case audio
    case video
}

extension DatagramContent: CaseIterable {
    package static let allCases: [Self] = [.other, .audio, .video]

    /// Label value in the metrics.
    package var name: String {
        switch self {
        case .other: "other"
        case .audio: "audio"
        case .video: "video"
        }
    }
}
