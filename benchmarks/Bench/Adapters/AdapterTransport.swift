import RTP
import SFU
import WorkerInterface

/// The bench's side of a transport, as its offer or answer describes it.
struct LocalTransport: Sendable {
    /// ICE user fragment and password (RFC 8445 §5.3).
    var fragment: String
    var password: String
    /// SHA-256 of the certificate; all peers of a run share one.
    var fingerprint: Fingerprint
    /// The one host candidate: 127.x.y.z and a UDP port, the source of all datagrams.
    ///
    /// Only the address identifies the peer: many peers share a socket and thus its port.
    var address: Address
    /// Unique in each transport; for session ids and the like.
    var seed: UInt64

    /// Value of `a=fingerprint` after `sha-256` (RFC 8122 §5).
    var fingerprintText: String {
        FingerprintAttribute(hash: "sha-256", digest: fingerprint.digest).digestText
    }
}

/// The SFU's side of a transport.
struct RemoteTransport: Sendable {
    enum Security: Sendable {
        /// ICE, DTLS and SRTP, with the SFU's credentials.
        case full(RemoteCredentials)
        /// Plain RTP between addresses, for the floors, which are not SFUs.
        case none
    }

    var security: Security
    /// A UDP candidate on 127.0.0.0/8.
    var address: Address
}

/// ICE and DTLS parameters that the SFU signalled.
struct RemoteCredentials: Sendable {
    var fragment: String
    var password: String
    var fingerprint: Fingerprint
    /// Our DTLS role: client if the SFU's side is `setup:passive`.
    var localDTLSRole: DTLSRole
    /// Whether we are ICE-controlling (RFC 8445 §6.1.1).
    ///
    /// True towards an ICE-lite SFU, and if we offered.
    var isControlling: Bool
}

/// Media that a participant sends.
///
/// The bench chooses the SSRCs and RIDs, and in `OfferParameters` the payload types and extension ids of an
/// offer.
struct Publication: Sendable {
    struct Layer: Sendable {
        /// `nil` for a single layer without simulcast.
        var rid: String?
        var ssrc: UInt32
        var rtxSSRC: UInt32
        var width: Int
        var height: Int
        /// Bits a second.
        var bitrate: Int
    }

    /// SSRC of Opus.
    var audio: UInt32?
    /// VP8 layers: none, one, or three of simulcast (`a=simulcast:send`, RFC 8853), smallest first.
    var layers: [Layer] = []
    var isScreen = false
}

/// A participant that joins.
struct JoinRequest: Sendable {
    var room: String
    /// 1 to 64 of `A-Z a-z 0-9 -`, unique in the room.
    var participant: String
    var local: LocalTransport
    var publication: Publication?
    /// Streams it will receive: m-lines for SFUs whose clients offer them beforehand.
    var audioSlots: Int
    var videoSlots: Int
}

struct JoinReply: Sendable {
    /// `nil` if joining creates no transport; then `watch` must return one.
    var remote: RemoteTransport?
    /// Negotiated format of the publication; `nil` if nothing is published.
    var sending: SendFormat?
}

/// Negotiated format of a publisher's packets.
struct SendFormat: Sendable {
    struct Line: Sendable {
        var mid: String
        var payloadType: UInt8
        /// `nil` without retransmissions (RFC 4588).
        var rtxPayloadType: UInt8?
        /// Ids of header extensions; 0 for one that is not sent.
        var extensions: ExtensionMap
    }

    var audio: Line?
    var video: Line?
}

/// Streams that a participant wants to receive.
struct WatchRequest: Sendable {
    struct StreamRequest: Sendable {
        /// A participant of the same room.
        var publisher: String
        var audio: Bool
        var video: Bool
        /// Index of the simulcast layer, from 0; ignored without simulcast.
        ///
        /// Until its next keyframe another layer may be sent.
        var layer: Int
    }

    var room: String
    var participant: String
    /// At most as many as the slots of the join.
    var streamRequests: [StreamRequest]
    /// Transport to use if the SFU needs a separate one for watching.
    var local: LocalTransport
}

struct WatchReply: Sendable {
    /// Transport made from `WatchRequest.local`; `nil` if media uses the transport of `join`.
    var remote: RemoteTransport?
    var streams: [ReceivedStream]
}

/// One stream that a participant will receive.
struct ReceivedStream: Sendable {
    var publisher: String
    var medium: Medium
    var ssrc: UInt32
    /// `nil` without retransmissions.
    var rtxSSRC: UInt32?
    var payloadType: UInt8
}
