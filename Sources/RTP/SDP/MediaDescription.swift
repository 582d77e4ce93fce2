/// M-line with its attributes, as far as WebRTC media needs them (RFC 8866 §5.14).
public struct MediaDescription: Hashable, Sendable {
    /// Line number of the `m=` line, from 1; 0 in a generated description.
    public var line = 0
    /// Media type: `audio`, `video`, `application` or another.
    public var media: String
    public var port: UInt16
    /// Transport protocol as written, such as `UDP/TLS/RTP/SAVPF`.
    public var transportProtocol: String
    /// RTP formats in order of preference; empty for other protocols.
    public var formats: [FormatDescription] = []
    /// Format list of a protocol other than RTP.
    public var otherFormats: String = ""
    /// Connection address to write; that of an offer is ignored.
    public var address: String?
    public var mid: String?
    public var direction: Direction?
    public var transport = TransportAttributes()
    /// Candidates to write; those of an offer are ignored, as sfud never sends to them.
    public var candidates: [CandidateAttribute] = []
    public var isBundleOnly = false
    public var multiplexesRTCP = false
    public var reducedSizeRTCP = false
    /// Participants that answer a receiver's reference times; `nil` if none are announced.
    public var receiverRoundTrip: ReceiverRoundTrip?
    /// `a=extmap-allow-mixed` (RFC 8285 §6).
    public var mixesExtensionForms = false
    public var extensions: [ExtensionAttribute] = []
    public var streams: StreamAttribute?
    public var sources: [SourceAttribute] = []
    public var sourceGroups: [SourceGroupAttribute] = []
    public var rids: [RIDAttribute] = []
    public var simulcast: SimulcastAttribute?

    public init(media: String, port: UInt16, transportProtocol: String) {
        self.media = media
        self.port = port
        self.transportProtocol = transportProtocol
    }

    /// Whether the protocol's formats are RTP payload types.
    public var isRTP: Bool {
        transportProtocol.utf8
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropLast()
            .contains { $0.elementsEqual("RTP".utf8) }
    }
}

/// Participants that answer receivers' reference times: `a=rtcp-xr:rcvr-rtt=` (RFC 3611 §5.1).
public enum ReceiverRoundTrip: String, Hashable, Sendable {
    case all
    /// Only those that send media.
    case sender
}

/// Payload type with its `a=rtpmap`, `a=fmtp` and `a=rtcp-fb` (RFC 8866 §6.6, RFC 4585 §4.2).
public struct FormatDescription: Hashable, Sendable {
    public var payloadType: UInt8
    /// Encoding name; empty without `a=rtpmap`.
    public var name = ""
    public var clockRate: UInt32 = 0
    /// Number of channels; 1 if not stated.
    public var channels: UInt8 = 1
    /// Text after the payload type in `a=fmtp`.
    public var parameters = ""
    /// Text after the payload type in each `a=rtcp-fb`, such as `nack pli`.
    public var feedback: [String] = []

    public init(payloadType: UInt8) { self.payloadType = payloadType }

    /// Returns whether the format has this lower-case name; case is ignored (RFC 4855 §3).
    public func isNamed(_ name: String) -> Bool { self.name.lowercased() == name }

    /// Returns the value of a `name=value` parameter; the case of names is ignored.
    public func parameter(_ name: String) -> Substring? {
        for part in parameters[...].fields(";") {
            var value = part.trimmed
            let key = value.cut(at: "=").trimmed
            if key.lowercased() == name { return value.trimmed }
        }
        return nil
    }
}

/// `a=extmap` (RFC 8285 §8).
public struct ExtensionAttribute: Hashable, Sendable {
    public var id: UInt16
    public var direction: Direction?
    public var uri: String

    public init(id: UInt16, direction: Direction?, uri: String) {
        self.id = id
        self.direction = direction
        self.uri = uri
    }
}

/// `a=msid` (RFC 8830 §2).
public struct StreamAttribute: Hashable, Sendable {
    public var stream: String
    public var track: String

    public init(stream: String, track: String) {
        self.stream = stream
        self.track = track
    }
}

/// SSRC of `a=ssrc` lines (RFC 5576 §4.1).
public struct SourceAttribute: Hashable, Sendable {
    public var ssrc: SSRC
    public var cname: String?

    public init(ssrc: SSRC, cname: String? = nil) {
        self.ssrc = ssrc
        self.cname = cname
    }
}

/// `a=ssrc-group` (RFC 5576 §4.2).
public struct SourceGroupAttribute: Hashable, Sendable {
    /// Semantics: `FID`, `SIM` or another.
    public var semantics: String
    public var ssrcs: [SSRC]

    public init(semantics: String, ssrcs: [SSRC]) {
        self.semantics = semantics
        self.ssrcs = ssrcs
    }
}

/// `a=rid` (RFC 8851 §10).
public struct RIDAttribute: Hashable, Sendable {
    public var id: String
    public var sends: Bool
    /// Payload types of `pt=`, if present.
    public var payloadTypes: [UInt8]
    /// Other restrictions as written, separated by `;`.
    public var restrictions: String

    public init(id: String, sends: Bool, payloadTypes: [UInt8] = [], restrictions: String = "") {
        self.id = id
        self.sends = sends
        self.payloadTypes = payloadTypes
        self.restrictions = restrictions
    }
}

/// `a=simulcast` (RFC 8853 §5.1): the alternatives of each stream, without pause marks.
public struct SimulcastAttribute: Hashable, Sendable {
    public var send: [[String]]
    public var receive: [[String]]

    public init(send: [[String]] = [], receive: [[String]] = []) {
        self.send = send
        self.receive = receive
    }
}

/// `a=candidate` for a host candidate (RFC 8839 §5.1).
public struct CandidateAttribute: Hashable, Sendable {
    /// Transport protocol of a candidate.
    public enum Transport: String, Hashable, Sendable, Codable {
        case udp
        /// Passive TCP: accepts connections and opens none (RFC 6544 §4.5).
        case tcpPassive
    }

    public var transport: Transport
    public var foundation: String
    public var priority: UInt32
    public var address: String
    public var port: UInt16

    public init(
        foundation: String,
        priority: UInt32,
        address: String,
        port: UInt16,
        transport: Transport = .udp
    ) {
        self.transport = transport
        self.foundation = foundation
        self.priority = priority
        self.address = address
        self.port = port
    }
}

/// Media direction of an m-line from the view of the SDP's author (RFC 8866 §6.7).
public enum Direction: String, Hashable, Sendable, CaseIterable {
    case sendrecv, sendonly, recvonly, inactive

    public init(sends: Bool, receives: Bool) {
        switch (sends, receives) {
        case (true, true): self = .sendrecv
        case (true, false): self = .sendonly
        case (false, true): self = .recvonly
        case (false, false): self = .inactive
        }
    }

    public var sends: Bool { self == .sendrecv || self == .sendonly }
    public var receives: Bool { self == .sendrecv || self == .recvonly }

    /// Same direction from the other side's view.
    public var mirrored: Self { Self(sends: receives, receives: sends) }
}
