/// What frames of one kind have in common, as plain values (RTP Payload Format for AV1 §A.8.2).
public struct DependencyTemplate: BitwiseCopyable, Sendable {
    public var spatialID: UInt8
    public var temporalID: UInt8
    /// Two bits for each decode target, the first one lowest.
    public var indications: UInt64
    /// Bit `i` for a frame that lies `i + 1` before.
    public var frameDifferences: UInt16

    public init(_ template: DependencyStructure.Template) {
        spatialID = template.spatialID
        temporalID = template.temporalID
        indications = template.indications
        frameDifferences = template.frameDifferences
    }
}

/// Who needs one frame, and what the frame needs, read without memory of its own.
public struct FrameNeeds: BitwiseCopyable, Sendable {
    public let spatialID: UInt8
    public let temporalID: UInt8
    /// Two bits for each decode target, the first one lowest.
    public let indications: UInt64
    /// How far back the frames lie that this one needs: bit `i` for `i + 1`, to 64.
    public private(set) var differences: UInt64 = 0
    /// It needs a frame that lies further back.
    public private(set) var reachesFurther = false
    /// Bit `i` for decode target `i`; `nil` where it stays as it was.
    public let activeDecodeTargets: UInt32?

    /// What the frame is to decode target `target`, 0 to 31.
    public func indication(ofDecodeTarget target: Int) -> DecodeTargetIndication {
        DecodeTargetIndication(indications, target & 31)
    }

    /// What an element with a structure of its own says.
    public init(_ frame: FrameDependencies) {
        spatialID = frame.spatialID
        temporalID = frame.temporalID
        indications = frame.indications
        activeDecodeTargets = frame.activeDecodeTargets
        note(frame.frameDifferences)
    }

    /// Reads an element without a structure by the templates of the last one.
    ///
    /// Returns `nil` where it is cut short, has a structure, or names a template that is not there.
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
                reachesFurther = true
            }
        }
    }
}
