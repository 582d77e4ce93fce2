/// Template of a dependency structure in fixed memory (RTP Payload Format for AV1 §A.8.2).
public struct DependencyTemplate: BitwiseCopyable, Sendable {
    public var spatialID: UInt8
    public var temporalID: UInt8
    /// Decode target indications, two bits each, the first in the lowest bits.
    public var indications: UInt64
    /// Frame differences: bit `i` is set for a dependency on the frame `i + 1` earlier.
    public var frameDifferences: UInt16

    public init(_ template: DependencyStructure.Template) {
        spatialID = template.spatialID
        temporalID = template.temporalID
        indications = template.indications
        frameDifferences = template.frameDifferences
    }
}

/// Decode targets and dependencies of one frame, parsed without allocation.
public struct FrameDependencySummary: BitwiseCopyable, Sendable {
    public let spatialID: UInt8
    public let temporalID: UInt8
    /// Decode target indications, two bits each, the first in the lowest bits.
    public let indications: UInt64
    /// Frames that this one depends on: bit `i` for the frame `i + 1` earlier, to 64.
    public private(set) var differences: UInt64 = 0
    /// Whether the frame depends on one that is more than 64 earlier.
    public private(set) var hasDistantDependency = false
    /// Active decode targets, bit `i` for target `i`; `nil` if unchanged.
    public let activeDecodeTargets: UInt32?

    /// Returns the frame's role for decode target `target`, 0 to 31.
    public func indication(ofDecodeTarget target: Int) -> DecodeTargetIndication {
        DecodeTargetIndication(indications, target & 31)
    }

    /// Converts the dependencies of an element with its own structure.
    public init(_ frame: FrameDependencies) {
        spatialID = frame.spatialID
        temporalID = frame.temporalID
        indications = frame.indications
        activeDecodeTargets = frame.activeDecodeTargets
        note(frame.frameDifferences)
    }

    /// Parses an element without a structure by the templates of the last structure.
    ///
    /// Returns `nil` if it is truncated, has a structure, or refers to a missing template.
    public init?(
        _ element: Span<UInt8>,
        templates: Span<DependencyTemplate>,
        firstID: UInt8,
        decodeTargetCount: Int
    ) {
        guard let descriptor = DependencyDescriptor(element), !descriptor.attachesStructure else {
            return nil
        }
        let index = Int((descriptor.templateID &- firstID) & 0x3f)
        guard index < templates.count else { return nil }
        let template = templates[index]
        var reader = BitReader(element)
        _ = reader.bits(24)
        let flags = element.count > 3 ? reader.bits(5) : 0
        activeDecodeTargets = flags & 0x08 != 0 ? reader.bits(decodeTargetCount) : nil
        spatialID = template.spatialID
        temporalID = template.temporalID
        indications =
            flags & 0x04 != 0
            ? reader.indications(count: decodeTargetCount) : template.indications
        if flags & 0x02 != 0 {
            note(FrameDifferences(&reader))
        } else {
            differences = UInt64(template.frameDifferences)
        }
        guard !reader.isExhausted else { return nil }
    }

    private mutating func note(_ list: borrowing FrameDifferences) {
        for index in 0..<list.count {
            let difference = list[index]
            if difference <= 64 {
                differences |= 1 << UInt64(difference - 1)
            } else {
                hasDistantDependency = true
            }
        }
    }
}
