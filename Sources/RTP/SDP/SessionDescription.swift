/// SDP session description, as far as WebRTC media needs it (RFC 8866, RFC 8829).
public struct SessionDescription: Hashable, Sendable {
    /// `sess-id` and `sess-version` of the origin.
    public var identifier: UInt64 = 0
    public var version: UInt64 = 0
    public var bundles: [BundleGroup] = []
    public var isICELite = false
    public var iceOptions: [String] = []
    public var mixesExtensionForms = false
    /// Direction of m-lines that state none.
    public var direction: Direction?
    public var transport = TransportAttributes()
    public var media: [MediaDescription] = []

    /// Number of lines in the parsed text.
    public var lineCount = 0

    public init() {}
}

/// `a=group:BUNDLE` (RFC 9143 §5).
public struct BundleGroup: Hashable, Sendable {
    /// Line number from 1; 0 in a generated description.
    public var line: Int
    public var mids: [String]

    public init(line: Int = 0, mids: [String]) {
        self.line = line
        self.mids = mids
    }
}
