extension SessionDescription {
    /// Parses a description in one pass.
    ///
    /// Lines that WebRTC does not need are skipped, including candidates. Lines end with CRLF or
    /// LF.
    public init(_ text: String) throws(SDPError) {
        var lines = try SDPLines(text)
        guard let first = try lines.next(), first.type == UInt8(ascii: "v"), first.value == "0"
        else { throw SDPError(line: 1, cause: "not version 0") }
        self.init()

        var reader: MediaSectionParser?
        while let line = try lines.next() {
            if line.type == UInt8(ascii: "m") {
                if let finished = reader?.finish() { media.append(finished) }
                guard media.count < SDPLimits.mediaLines else {
                    throw line.error("more than \(SDPLimits.mediaLines) m-lines")
                }
                reader = try MediaSectionParser(line)
            } else if line.type == UInt8(ascii: "a") {
                try readAttribute(line, into: &reader)
            } else {
                try readOther(line)
            }
        }
        if let finished = reader?.finish() { media.append(finished) }
        lineCount = lines.number
    }

    /// Parses a description that may not be UTF-8.
    public init(utf8 bytes: [UInt8]) throws(SDPError) {
        guard bytes.count <= SDPLimits.bytes else {
            throw SDPError(line: 1, cause: "longer than \(SDPLimits.bytes) bytes")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            let bad = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil }
            throw SDPError(line: (bad ?? 0) + 1, cause: "not UTF-8")
        }
        try self.init(text)
    }

    private mutating func readAttribute(
        _ line: SDPLines.Line,
        into reader: inout MediaSectionParser?
    ) throws(SDPError) {
        var value = line.value
        let name = value.cut(at: ":")
        if reader != nil {
            try reader?.read(name: name, value: value, line: line)
        } else {
            try readSessionAttribute(name: name, value: value, line: line)
        }
    }

    private mutating func readSessionAttribute(
        name: Substring,
        value: Substring,
        line: SDPLines.Line
    ) throws(SDPError) {
        guard try !transport.read(name: name, value: value, line: line) else { return }
        switch name {
        case "group":
            var mids = value.fields()
            guard mids.first == "BUNDLE" else { return }
            mids.removeFirst()
            guard mids.count <= SDPLimits.mediaLines, bundles.count < SDPLimits.mediaLines else {
                throw line.error("more than \(SDPLimits.mediaLines) mids or groups")
            }
            bundles.append(BundleGroup(line: line.number, mids: mids.map(String.init)))
        case "ice-lite": isICELite = true
        case "ice-options": iceOptions = value.fields().map(String.init)
        case "extmap-allow-mixed": mixesExtensionForms = true
        default:
            if let direction = Direction(rawValue: String(name)) { self.direction = direction }
        }
    }

    private mutating func readOther(_ line: SDPLines.Line) throws(SDPError) {
        switch line.type {
        case UInt8(ascii: "o"):
            let fields = line.value.fields()
            guard fields.count == 6, let identifier: UInt64 = fields[1].decimal(),
                let version: UInt64 = fields[2].decimal()
            else { throw line.error("o= is not of the form user id version IN IP4 address") }
            self.identifier = identifier
            self.version = version
        case UInt8(ascii: "s"), UInt8(ascii: "i"), UInt8(ascii: "u"), UInt8(ascii: "e"),
            UInt8(ascii: "p"), UInt8(ascii: "c"), UInt8(ascii: "b"), UInt8(ascii: "t"),
            UInt8(ascii: "r"), UInt8(ascii: "z"), UInt8(ascii: "k"):
            break
        default:
            // RFC 8866 §5: a description with an undefined line type is invalid.
            throw line.error("unknown line type")
        }
    }
}

extension SDPLines.Line {
    func error(_ cause: String) -> SDPError { SDPError(line: number, cause: cause) }
}

extension TransportAttributes {
    /// Reads an ICE or DTLS attribute; returns `false` for any other attribute.
    mutating func read(
        name: Substring,
        value: Substring,
        line: SDPLines.Line
    ) throws(SDPError) -> Bool {
        switch name {
        case "ice-ufrag":
            guard value.isICEText(4...256) else {
                throw line.error("ice-ufrag is not 4 to 256 ice-chars")
            }
            fragment = String(value)
        case "ice-pwd":
            guard value.isICEText(22...256) else {
                throw line.error("ice-pwd is not 22 to 256 ice-chars")
            }
            password = String(value)
        case "fingerprint":
            guard let fingerprint = FingerprintAttribute(value) else {
                throw line.error("fingerprint is malformed")
            }
            guard fingerprints.count < SDPLimits.fingerprints else {
                throw line.error("more than \(SDPLimits.fingerprints) fingerprints")
            }
            fingerprints.append(fingerprint)
        case "setup":
            guard let setup = Setup(rawValue: String(value)) else {
                throw line.error("setup is not active, passive, actpass or holdconn")
            }
            self.setup = setup
        default:
            return false
        }
        return true
    }
}

/// Limits on a session description; each count is per description or per m-line.
public enum SDPLimits {
    public static let bytes = 262_144
    public static let mediaLines = 100
    public static let lineBytes = 8_192
    public static let midBytes = 48
    public static let ridBytes = 64
    public static let formats = 128
    public static let feedbackKinds = 16
    public static let extensions = 64
    public static let rids = 16
    public static let sources = 64
    public static let sourceGroups = 64
    public static let fingerprints = 16
}

/// Error in a session description.
public struct SDPError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The text breaks a rule of the RFCs or one of sfud's limits on text.
        case malformed
        /// The text is valid, but no identifier is left for its content.
        case exhausted
    }

    /// Line number from 1; the last line if something is missing, 0 if no line is at fault.
    public var line: Int
    /// Explanation for people: one clause without secrets.
    public var cause: String
    public var reason: Reason

    public init(line: Int, cause: String, reason: Reason = .malformed) {
        self.line = line
        self.cause = cause
        self.reason = reason
    }
}
