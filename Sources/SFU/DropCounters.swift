/// How many packets went no further, by cause.
struct DropCounters: ~Copyable {
    private var counts = Ring<UInt64>(capacity: 32, filledWith: 0)

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
        case .malformedRTP: 8
        case .malformedRTCP: 9
        case .srtpAuthentication: 10
        case .srtpReplay: 11
        case .unknownStream: 12
        case .unknownPayloadType: 13
        case .streamLimit: 14
        case .bufferFull: 15
        case .duplicate: 16
        case .tooOld: 17
        case .padding: 18
        case .gated: 19
        case .noSubscriber: 20
        case .awaitingKeyframe: 21
        case .noCommonCodec: 22
        case .layerNotSelected: 23
        case .sendQueueFull: 24
        }
    }
}
