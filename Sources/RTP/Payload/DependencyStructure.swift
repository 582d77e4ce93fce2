/// Template dependency structure of a stream (RTP Payload Format for AV1 §A.8.2).
///
/// It describes the stream's kinds of frames and their dependencies. It arrives with keyframes and
/// applies to the frames that follow.
public struct DependencyStructure: Equatable, Sendable {
    /// Template: the properties that frames of one kind share.
    public struct Template: Equatable, Sendable {
        public var spatialID: UInt8
        public var temporalID: UInt8
        /// Decode target indications, two bits each, the first in the lowest bits.
        var indications: UInt64 = 0
        /// Frame differences: bit `i` is set for a dependency on the frame `i + 1` earlier.
        public var frameDifferences: UInt16 = 0
        public var chainDifferences = ChainDifferences()
    }

    /// Id of the first template.
    public let templateIDOffset: UInt8
    /// Number of decode targets, 1 to 32.
    public let decodeTargetCount: Int
    /// Number of chains, 0 to 32.
    public private(set) var chainCount = 0
    /// Templates, 1 to 64.
    public private(set) var templates: [Template] = []
    /// Chain that protects each decode target; empty without chains.
    public private(set) var protectingChains: [UInt8] = []
    /// Size of each spatial layer, lowest first; empty if not stated.
    public private(set) var resolutions: [PictureSize] = []

    public var spatialLayerCount: Int {
        1 + Int(templates.reduce(0) { max($0, $1.spatialID) })
    }

    public var temporalLayerCount: Int {
        1 + Int(templates.reduce(0) { max($0, $1.temporalID) })
    }

    /// Returns the highest layers that decode target `target` needs (§A.8.2 decode_target_layers).
    public func layers(ofDecodeTarget target: Int) -> (spatialID: UInt8, temporalID: UInt8) {
        precondition(target >= 0 && target < decodeTargetCount, "no such decode target")
        var spatialID: UInt8 = 0
        var temporalID: UInt8 = 0
        for template in templates
        where DecodeTargetIndication(template.indications, target) != .notPresent {
            spatialID = max(spatialID, template.spatialID)
            temporalID = max(temporalID, template.temporalID)
        }
        return (spatialID, temporalID)
    }

    /// Parses a structure; returns `nil` if it is truncated or has more than eight spatial or
    /// temporal layers, which no encoder produces.
    init?(_ reader: inout BitReader) {
        templateIDOffset = UInt8(reader.bits(6))
        decodeTargetCount = Int(reader.bits(5)) + 1
        guard readLayers(&reader) else { return nil }
        for index in templates.indices {
            templates[index].indications = reader.indications(count: decodeTargetCount)
        }
        for index in templates.indices {
            while reader.bit() { templates[index].frameDifferences |= 1 << UInt16(reader.bits(4)) }
        }
        readChains(&reader)
        if reader.bit() {
            for _ in 0..<spatialLayerCount {
                let width = reader.bits(16) + 1
                resolutions.append(PictureSize(width: width, height: reader.bits(16) + 1))
            }
        }
        guard !reader.isExhausted else { return nil }
    }

    private mutating func readLayers(_ reader: inout BitReader) -> Bool {
        var template = Template(spatialID: 0, temporalID: 0)
        while templates.count < 64 {
            templates.append(template)
            switch reader.bits(2) {
            case 0: break
            case 1: template.temporalID += 1
            case 2:
                template.temporalID = 0
                template.spatialID += 1
            default: return true
            }
            guard template.spatialID < 8, template.temporalID < 8, !reader.isExhausted else {
                return false
            }
        }
        return false
    }

    private mutating func readChains(_ reader: inout BitReader) {
        chainCount = reader.nonSymmetric(below: decodeTargetCount + 1)
        guard chainCount > 0 else { return }
        for _ in 0..<decodeTargetCount {
            protectingChains.append(UInt8(reader.nonSymmetric(below: chainCount)))
        }
        for index in templates.indices {
            for chain in 0..<chainCount {
                templates[index].chainDifferences[chain] = UInt8(reader.bits(4))
            }
        }
    }
}

/// Role of a frame for a decode target (§A.4); the raw value is the two-bit code.
public enum DecodeTargetIndication: UInt8, Sendable {
    case notPresent, discardable, switchable, required

    init(_ packed: UInt64, _ target: Int) {
        self = Self(rawValue: UInt8(packed >> UInt64(2 * target) & 3)) ?? .notPresent
    }
}

/// Distance to the previous frame of each chain, 0 if the chain starts here (§A.5).
public struct ChainDifferences: Equatable, Sendable {
    private var values: InlineArray<32, UInt8> = .init(repeating: 0)

    public init() {}

    public subscript(chain: Int) -> UInt8 {
        get { values[chain] }
        set { values[chain] = newValue }
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.values.indices.allSatisfy { left.values[$0] == right.values[$0] }
    }
}

extension BitReader {
    /// Reads the indications of `count` decode targets, two bits each, the first in the lowest
    /// bits.
    mutating func indications(count: Int) -> UInt64 {
        var packed: UInt64 = 0
        for target in 0..<count { packed |= UInt64(bits(2)) << UInt64(2 * target) }
        return packed
    }
}
