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
        case .streamRateLimited: 23
        case .noSubscriber: 24
        case .awaitingKeyframe: 25
        case .noCommonCodec: 26
        case .layerNotSelected: 27
        case .sendFailed: 28
        case .sendQueueFull: 29
        case .relayQueueFull: 30
        case .sendQueueStale: 31
        case .sendQueueWithdrawn: 32
        }
    }
}
