/// RTP header extension that sfud knows.
public enum ExtensionKind: UInt8, CaseIterable, Hashable, Sendable {
    /// `urn:ietf:params:rtp-hdrext:sdes:mid` (RFC 9143 §15).
    case mid
    /// `urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id` (RFC 8852 §4.1).
    case rid
    /// `urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id` (RFC 8852 §4.2).
    case repairedRID
    /// `urn:ietf:params:rtp-hdrext:ssrc-audio-level` (RFC 6464).
    case audioLevel
    case absoluteSendTime
    case transportSequenceNumber
    /// `urn:3gpp:video-orientation` (3GPP TS 26.114 §7.4.5).
    case videoOrientation
    /// Neither agreed to nor forwarded, and a kind only for the order in which ids are saved.
    ///
    /// libwebrtc goes on with the last delay that came, so that a publisher's would stay with the
    /// m-line for all who are shown on it later.
    case playoutDelay
    case absoluteCaptureTime
    case dependencyDescriptor
    case videoLayersAllocation

    public static let count = 11
}

/// Ids of the header extensions on one m-line, and the reverse lookup; 0 means not negotiated.
public struct ExtensionMap: Hashable, Sendable, BitwiseCopyable, Codable {
    /// Ids indexed by `ExtensionKind.rawValue`.
    @usableFromInline var ids: InlineArray<11, UInt8>

    @inlinable
    public init() { ids = InlineArray(repeating: 0) }

    /// Id of `kind`, or 0.
    @inlinable
    public subscript(kind: ExtensionKind) -> UInt8 {
        get { ids[Int(kind.rawValue)] }
        set { ids[Int(kind.rawValue)] = newValue }
    }

    /// Returns the extension with this id, if it was negotiated.
    @inlinable
    public func kind(of id: UInt8) -> ExtensionKind? {
        guard id != 0 else { return nil }
        for index in 0..<ExtensionKind.count where ids[index] == id {
            return ExtensionKind(rawValue: UInt8(truncatingIfNeeded: index))
        }
        return nil
    }

    public static func == (left: Self, right: Self) -> Bool {
        ExtensionKind.allCases.allSatisfy { left[$0] == right[$0] }
    }

    public func hash(into hasher: inout Hasher) {
        for kind in ExtensionKind.allCases { hasher.combine(self[kind]) }
    }
}

// Saved as the ids in the order of the kinds; kinds that are added later have none.
extension ExtensionMap {
    public init(from decoder: any Decoder) throws {
        self.init()
        let saved = try decoder.singleValueContainer().decode([UInt8].self)
        for (kind, id) in zip(ExtensionKind.allCases, saved) { self[kind] = id }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ExtensionKind.allCases.map { self[$0] })
    }
}

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
