/// How many packets went no further, by cause.
struct DropCounters: ~Copyable {
    private var counts = Ring<UInt64>(capacity: 64, filledWith: 0)

    init() {
        precondition(DropReason.allCases.count <= counts.capacity, "more causes than counters")
    }

    mutating func count(_ reason: DropReason) { counts[reason.index] &+= 1 }

    subscript(reason: DropReason) -> UInt64 { counts[reason.index] }
}

extension DropReason {
    /// Its place in `allCases`.
    var index: Int {
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
        case .malformedRTP: 11
        case .srtpAuthentication: 12
        case .srtpReplay: 13
        case .unknownStream: 14
        case .unknownPayloadType: 15
        case .streamLimit: 16
        case .bufferFull: 17
        case .duplicate: 18
        case .tooOld: 19
        case .padding: 20
        case .gated: 21
        case .policed: 22
        case .stale: 23
        case .streamRateLimited: 24
        case .noSubscriber: 25
        case .awaitingKeyframe: 26
        case .noCommonCodec: 27
        case .layerNotSelected: 28
        case .sendFailed: 29
        case .sendQueueFull: 30
        case .relayQueueFull: 31
        case .sendQueueStale: 32
        case .sendQueueWithdrawn: 33
        }
    }
}
