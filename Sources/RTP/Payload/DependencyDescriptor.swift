/// Mandatory fields of the dependency descriptor (RTP Payload Format for AV1 §A.8.1).
public struct DependencyDescriptor: Equatable, Sendable {
    public let startOfFrame: Bool
    public let endOfFrame: Bool
    /// Template of the structure that the frame follows, in six bits.
    public let templateID: UInt8
    /// Frame number, which wraps like a sequence number; it lies at `frameNumberOffset` of the
    /// element.
    public let frameNumber: UInt16
    /// Whether a new structure is attached, as with every keyframe.
    public let attachesStructure: Bool

    /// Offset of the frame number in the element, in bytes.
    public static var frameNumberOffset: Int { 1 }

    public init?(_ element: Span<UInt8>) {
        guard element.count >= 3 else { return nil }
        startOfFrame = element[0] & 0x80 != 0
        endOfFrame = element[0] & 0x40 != 0
        templateID = element[0] & 0x3f
        frameNumber = element.u16(at: 1)
        attachesStructure = element.count > 3 && element[3] & 0x80 != 0
    }
}

/// Layers and dependencies of one frame: a dependency descriptor resolved with its structure.
public struct FrameDependencies: Equatable, Sendable {
    public let descriptor: DependencyDescriptor
    public let spatialID: UInt8
    public let temporalID: UInt8
    /// Active decode targets, bit `i` for target `i`; `nil` if unchanged.
    public private(set) var activeDecodeTargets: UInt32?
    private(set) var indications: UInt64
    /// Distances in frame numbers to the frames that this one depends on; at most the first
    /// sixteen.
    public private(set) var frameDifferences = FrameDifferences()
    public private(set) var chainDifferences: ChainDifferences

    /// Returns the frame's role for decode target `target`.
    public func indication(ofDecodeTarget target: Int) -> DecodeTargetIndication {
        precondition((0..<32).contains(target), "no such decode target")
        return DecodeTargetIndication(indications, target)
    }

    /// Parses `element` with the current `structure`, which an attached one replaces.
    ///
    /// Returns `nil`, and leaves `structure` unchanged, if the element is truncated, needs a
    /// missing structure or template, or has more layers than `DependencyStructure` allows. Only an
    /// element with a new structure allocates: its lists of templates.
    public init?(_ element: Span<UInt8>, structure: inout DependencyStructure?) {
        guard let descriptor = DependencyDescriptor(element) else { return nil }
        var reader = BitReader(element)
        _ = reader.bits(24)
        // An element has either three bytes, or five flags after these (§A.8.1).
        let flags = element.count > 3 ? reader.bits(5) : 0
        var current = structure
        var activeDecodeTargets: UInt32?
        if flags & 0x10 != 0 {
            guard let attached = DependencyStructure(&reader) else { return nil }
            activeDecodeTargets = .max >> UInt32(32 - attached.decodeTargetCount)
            current = attached
        }
        guard let current else { return nil }
        if flags & 0x08 != 0 { activeDecodeTargets = reader.bits(current.decodeTargetCount) }

        let index = Int((descriptor.templateID &- current.templateIDOffset) & 0x3f)
        guard index < current.templates.count else { return nil }
        let template = current.templates[index]
        self.descriptor = descriptor
        self.activeDecodeTargets = activeDecodeTargets
        spatialID = template.spatialID
        temporalID = template.temporalID
        indications = template.indications
        chainDifferences = template.chainDifferences
        if flags & 0x04 != 0 { indications = reader.indications(count: current.decodeTargetCount) }
        if flags & 0x02 != 0 {
            frameDifferences = FrameDifferences(&reader)
        } else {
            frameDifferences = FrameDifferences(template.frameDifferences)
        }
        if flags & 0x01 != 0 {
            for chain in 0..<current.chainCount { chainDifferences[chain] = UInt8(reader.bits(8)) }
        }
        guard !reader.isExhausted else { return nil }
        if flags & 0x10 != 0 { structure = current }
    }
}

/// Frame number differences, 1 to 4,096, at most sixteen (§A.8.3 frame_fdiffs).
public struct FrameDifferences: Equatable, Sendable {
    private var values: InlineArray<16, UInt16> = .init(repeating: 0)
    public private(set) var count = 0

    public init() {}

    /// Converts a template's bitmask: bit `i` is set for a difference of `i + 1`.
    init(_ bits: UInt16) {
        for index in 0..<16 where bits >> UInt16(index) & 1 != 0 { append(UInt16(index + 1)) }
    }

    /// Reads a frame's own list: each value is preceded by its size in nibbles, and size 0 ends the
    /// list.
    init(_ reader: inout BitReader) {
        while case let size = Int(reader.bits(2)), size > 0 {
            append(UInt16(reader.bits(4 * size) + 1))
        }
    }

    public subscript(index: Int) -> UInt16 {
        precondition(index >= 0 && index < count, "no such difference")
        return values[index]
    }

    private mutating func append(_ value: UInt16) {
        guard count < values.count else { return }
        values[count] = value
        count += 1
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.count == right.count
            && (0..<left.count).allSatisfy { left.values[$0] == right.values[$0] }
    }
}
