@testable import RTP

// Testing's macros cannot take an expression with a `Span` in it; they can take these.

extension VP8Descriptor {
    init?(_ payload: [UInt8]) { self.init(payload.span) }

    func isKeyframeStart(_ payload: [UInt8]) -> Bool { isKeyframeStart(payload.span) }

    func resolution(_ payload: [UInt8]) -> PictureSize? { resolution(payload.span) }
}

extension VP9Descriptor {
    init?(_ payload: [UInt8]) { self.init(payload.span) }
}

extension H264Payload {
    static func isKeyframeStart(_ payload: [UInt8]) -> Bool { isKeyframeStart(payload.span) }

    static func resolution(_ payload: [UInt8]) -> PictureSize? { resolution(payload.span) }
}

extension AV1AggregationHeader {
    init?(_ payload: [UInt8]) { self.init(payload.span) }
}

extension OpusPacket {
    init?(_ payload: [UInt8]) { self.init(payload.span) }
}

extension DependencyDescriptor {
    init?(_ element: [UInt8]) { self.init(element.span) }
}

extension FrameDependencies {
    init?(_ element: [UInt8], structure: inout DependencyStructure?) {
        self.init(element.span, structure: &structure)
    }
}

extension VideoLayersAllocation {
    init?(_ element: [UInt8]) { self.init(element.span) }
}

extension Span<UInt8> {
    /// A copy that outlives the span.
    var array: [UInt8] { indices.map { self[$0] } }
}
