import RTP
import SFU
import WorkerInterface

/// Our side of a transport: what an offer or an answer says of it.
struct LocalTransport: Sendable {
    /// ICE user fragment and password (RFC 8445 §5.3).
    var fragment: String
    var password: String
    /// SHA-256 of the certificate; all peers of a run share one.
    var fingerprint: Fingerprint
    /// The one host candidate: 127.x.y.z and a UDP port, from which all datagrams come.
    ///
    /// Only the address tells peers apart: many share a port, as they share a socket.
    var address: Address
    /// Different in each transport; for session ids and the like.
    var seed: UInt64

    /// `sha-256`'s value in `a=fingerprint` (RFC 8122 §5).
    var fingerprintText: String {
        FingerprintAttribute(hash: "sha-256", digest: fingerprint.digest).digestText
    }
}

/// The SFU's side of a transport.
struct RemoteTransport: Sendable {
    enum Security: Sendable {
        /// ICE, DTLS and SRTP, with what they need.
        case full(RemoteCredentials)
        /// RTP in clear from address to address: the floors, which are no SFUs.
        case none
    }

    var security: Security
    /// A UDP candidate on 127.0.0.0/8.
    var address: Address
}

/// What the SFU said of its ICE and DTLS.
struct RemoteCredentials: Sendable {
    var fragment: String
    var password: String
    var fingerprint: Fingerprint
    /// Our part in the handshake: the client where the SFU's side is `setup:passive`.
    var ourRole: DTLSRole
    /// Whether we nominate (RFC 8445 §6.1.1): true towards an ICE-lite SFU, and where we offered.
    var weControl: Bool
}

/// What a participant sends; the bench chose the SSRCs, the RIDs and, in `Wire`, the payload
/// types and extension ids that an offer has.
struct Publication: Sendable {
    struct Layer: Sendable {
        /// `nil` where there is one layer only, and no simulcast.
        var rid: String?
        var ssrc: UInt32
        var rtxSSRC: UInt32
        var width: Int
        var height: Int
        /// Bits a second.
        var bitrate: Int
    }

    /// The SSRC of Opus.
    var audio: UInt32?
    /// VP8: none, one, or three of simulcast (`a=simulcast:send`, RFC 8853), the smallest first.
    var layers: [Layer] = []
    var isScreen = false
}

/// A participant that comes.
struct JoinRequest: Sendable {
    var room: String
    /// 1 to 64 of `A-Z a-z 0-9 -`, its own in the room.
    var participant: String
    var local: LocalTransport
    var publication: Publication?
    /// What it will watch: m-lines for SFUs whose clients offer them beforehand.
    var audioSlots: Int
    var videoSlots: Int
}

struct JoinReply: Sendable {
    /// `nil` where joining connects nothing: then `watch` has to return one.
    var remote: RemoteTransport?
    /// How to send what is published; `nil` where that is nothing.
    var sending: SendFormat?
}

/// What packets of a publisher have to look like, as negotiated.
struct SendFormat: Sendable {
    struct Line: Sendable {
        var mid: String
        var payloadType: UInt8
        /// `nil`: no retransmissions (RFC 4588).
        var rtxPayloadType: UInt8?
        /// Ids of header extensions; 0 for one that is not to be sent.
        var extensions: ExtensionMap
    }

    var audio: Line?
    var video: Line?
}

/// What a participant wants to see and hear.
struct WatchRequest: Sendable {
    struct Wish: Sendable {
        /// A participant of the same room.
        var publisher: String
        var audio: Bool
        var video: Bool
        /// Which of the simulcast layers, from 0; ignored where there is one.
        ///
        /// Until its next keyframe another may come.
        var layer: Int
    }

    var room: String
    var participant: String
    /// At most as many as the slots of the join.
    var wishes: [Wish]
    /// To be used where watching has a transport of its own.
    var local: LocalTransport
}

struct WatchReply: Sendable {
    /// The transport made from `WatchRequest.local`; `nil` where media comes over that of `join`.
    var remote: RemoteTransport?
    var streams: [ReceivedStream]
}

/// One stream that a participant will receive.
struct ReceivedStream: Sendable {
    var publisher: String
    var medium: Medium
    var ssrc: UInt32
    /// `nil` where there are no retransmissions.
    var rtxSSRC: UInt32?
    var payloadType: UInt8
}
