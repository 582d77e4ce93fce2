/// A way in for bytes that somebody else has chosen.
///
/// The tests run each over its kept corpus, and libFuzzer goes on from there (`make fuzz`).
package enum FuzzTarget: String, CaseIterable {
    case packet, rtcp, stun, vp8, vp9, h264, av1, opus, red
    case dependencyDescriptor = "dependency-descriptor"
    case layersAllocation = "layers-allocation"
    case sdp, json, ipc, configuration, track, peer, plan

    /// Takes the bytes as the daemon would, and traps where it would trap.
    ///
    /// Returns a figure made of all that was read, the same for the same bytes; throws what was
    /// done that ought not to be.
    package func run(_ bytes: [UInt8]) throws(Violation) -> Int {
        switch self {
        case .packet: readPacket(bytes.span)
        case .rtcp: readRTCP(bytes.span)
        case .stun: readSTUN(bytes.span)
        case .vp8: readVP8(bytes.span)
        case .vp9: readVP9(bytes.span)
        case .h264: readH264(bytes.span)
        case .av1: readAV1(bytes.span)
        case .opus: readOpus(bytes.span)
        case .red: readRED(bytes.span)
        case .dependencyDescriptor: readDependencyDescriptors(bytes)
        case .layersAllocation: readLayersAllocation(bytes.span)
        case .sdp: try OfferTrial.run(bytes)
        case .json: try readJSON(bytes)
        case .ipc: try CallTrial.run(bytes)
        case .configuration: try readConfiguration(bytes)
        case .track: try readTrack(bytes)
        case .peer: try PeerTrial.run(bytes)
        case .plan: try PlanTrial.run(bytes)
        }
    }

    /// Whether one run takes so little that each input may be run cut at every byte.
    var isParser: Bool {
        switch self {
        case .sdp, .json, .ipc, .configuration, .track, .peer, .plan: false
        default: true
        }
    }
}

/// Something that input did to us, in words.
package struct Violation: Error, CustomStringConvertible {
    package var description: String

    init(_ description: String) { self.description = description }
}

/// Takes input apart, for targets that do more than one thing with it.
struct Cursor {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    /// The next byte; 0 past the end.
    mutating func byte() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    /// As many bytes as the next two say, big-endian, or fewer where there are no more.
    mutating func chunk() -> [UInt8] {
        let count = Int(byte()) << 8 | Int(byte())
        let end = min(position + count, bytes.count)
        defer { position = end }
        return Array(bytes[min(position, end)..<end])
    }
}
