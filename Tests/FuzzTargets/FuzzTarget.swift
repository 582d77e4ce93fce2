/// A fuzz target: an entry point for bytes that an attacker chooses.
///
/// The tests run each target over its kept corpus; libFuzzer continues from there (`make fuzz`).
package enum FuzzTarget: String, CaseIterable {
    case packet, rtcp, stun, vp8, vp9, h264, av1, opus, red
    case dependencyDescriptor = "dependency-descriptor"
    case layersAllocation = "layers-allocation"
    case sdp, json, ipc, configuration, track, peer, plan

    /// Takes the bytes as the daemon would, and traps where it would trap.
    ///
    /// Returns a digest of all that was read, the same for the same bytes; throws if an invariant
    /// was violated.
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

    /// Whether a run is cheap enough to repeat each input truncated at every byte.
    var isParser: Bool {
        switch self {
        case .sdp, .json, .ipc, .configuration, .track, .peer, .plan: false
        default: true
        }
    }
}

/// An invariant that an input violated, in words.
package struct Violation: Error, CustomStringConvertible {
    package var description: String

    init(_ description: String) { self.description = description }
}

/// Splits input for targets that take several values from it.
struct Cursor {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    /// Reads the next byte; 0 past the end.
    mutating func byte() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    /// Reads as many bytes as the next two bytes (big-endian) say, or fewer at the end of the
    /// input.
    mutating func chunk() -> [UInt8] {
        let count = Int(byte()) << 8 | Int(byte())
        let end = min(position + count, bytes.count)
        defer { position = end }
        return Array(bytes[min(position, end)..<end])
    }
}
