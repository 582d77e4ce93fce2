import WorkerInterface

/// Counters of dropped packets by reason.
struct DropCounters: ~Copyable {
    private var counts = Ring<UInt64>(capacity: 64, filledWith: 0)

    init() {
        precondition(DropReason.allCases.count <= counts.capacity, "more causes than counters")
    }

    mutating func count(_ reason: DropReason) { counts[reason.index] &+= 1 }

    subscript(reason: DropReason) -> UInt64 { counts[reason.index] }
}

extension DropReason {
    /// Position in `allCases`.
    package var index: Int {
        switch self {
        case .unknownProtocol: 0
        case .oversized: 1
        case .unknownSource: 2
        case .stunMalformed: 3
        case .stunUnauthenticated: 4
        case .stunRateLimited: 5
        case .dtlsUnexpected: 6
        case .notConnected: 7
        case .malformedRTCP: 8
        case .srtcpAuthentication: 9
        case .srtcpReplay: 10
        case .rtcpRateLimited: 11
        case .malformedRTP: 12
        case .srtpAuthentication: 13
        case .srtpReplay: 14
        case .unknownStream: 15
        case .unknownPayloadType: 16
        case .streamLimit: 17
        case .bufferFull: 18
        case .duplicate: 19
        case .tooOld: 20
        case .padding: 21
        case .gated: 22
        case .policed: 23
        case .stale: 24
        case .streamRateLimited: 25
        case .noSubscriber: 26
        case .awaitingKeyframe: 27
        case .noCommonCodec: 28
        case .layerNotSelected: 29
        case .sendFailed: 30
        case .sendQueueFull: 31
        case .relayQueueFull: 32
        case .sendQueueStale: 33
        case .sendQueueWithdrawn: 34
        }
    }
}
