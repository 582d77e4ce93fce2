extension ExtensionKind {
    /// URI in `a=extmap` (RFC 8285 §8).
    public var uri: String {
        switch self {
        case .mid: "urn:ietf:params:rtp-hdrext:sdes:mid"
        case .rid: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
        case .repairedRID: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
        case .audioLevel: "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
        case .absoluteSendTime: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
        case .transportSequenceNumber:
            "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
        case .videoOrientation: "urn:3gpp:video-orientation"
        case .playoutDelay: "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
        case .absoluteCaptureTime:
            "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
        case .dependencyDescriptor:
            "https://aomediacodec.github.io/av1-rtp-spec/"
                + "#dependency-descriptor-rtp-header-extension"
        case .videoLayersAllocation:
            "http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00"
        }
    }

    /// Returns the extension with that URI, if sfud supports it.
    public init?(uri: String) {
        guard let kind = Self.kindsByURI[uri] else { return nil }
        self = kind
    }

    private static let kindsByURI: [String: Self] = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0.uri, $0) }
    )
}
