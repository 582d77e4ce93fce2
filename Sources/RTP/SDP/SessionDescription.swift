/// An SDP session description, as far as WebRTC media needs it (RFC 8866, RFC 8829).
public struct SessionDescription: Hashable, Sendable {
    /// `sess-id` and `sess-version` of the origin.
    public var identifier: UInt64 = 0
    public var version: UInt64 = 0
    /// The mids of each `a=group:BUNDLE` (RFC 9143 §5).
    public var bundles: [[String]] = []
    public var isICELite = false
    public var iceOptions: [String] = []
    public var mixesExtensionForms = false
    /// Holds for m-lines that say nothing else.
    public var direction: Direction?
    public var transport = TransportAttributes()
    public var media: [MediaDescription] = []

    public init() {}
}
