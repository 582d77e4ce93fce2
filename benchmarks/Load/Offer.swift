import LoadPeer
import RTP
import SFU

/// The SSRCs of what the publisher sends.
struct PublishedSources: Sendable {
    var audio: UInt32
    var video: UInt32
    var rtx: UInt32
}

/// Offers as Chromium makes them, with only what a load needs.
enum Offer {
    /// Audio and video, sent where there are `sources` and received where not.
    static func text(
        seed: UInt64,
        fingerprint: Fingerprint,
        sources: PublishedSources?
    ) -> String {
        let digest = FingerprintAttribute(hash: "sha-256", digest: fingerprint.digest).digestText
        let direction = sources == nil ? "recvonly" : "sendonly"
        let session = """
            v=0
            o=- \(seed >> 1) 1 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE 0 1
            a=extmap-allow-mixed
            """
        let transport = """
            c=IN IP4 0.0.0.0
            a=ice-ufrag:\(LoadPeer.fragment(seed: seed))
            a=ice-pwd:\(LoadPeer.password(seed: seed))
            a=fingerprint:sha-256 \(digest)
            a=setup:actpass
            a=\(direction)
            a=rtcp-mux
            a=rtcp-rsize
            a=extmap:\(Wire.sendTimeExtension) \(ExtensionKind.absoluteSendTime.uri)
            a=extmap:\(Wire.transportSequenceExtension) \
            \(ExtensionKind.transportSequenceNumber.uri)
            a=extmap:\(Wire.midExtension) \(ExtensionKind.mid.uri)
            """
        let parts = [session, audio, "a=mid:0", transport, audioSources(sources)]
        let more = [video, "a=mid:1", transport, videoSources(sources)]
        let lines = (parts + more).filter { !$0.isEmpty }.joined(separator: "\n")
        return lines.split(separator: "\n").joined(separator: "\r\n") + "\r\n"
    }

    private static let audio = """
        m=audio 9 UDP/TLS/RTP/SAVPF \(Wire.audioPayloadType)
        a=rtpmap:\(Wire.audioPayloadType) opus/48000/2
        a=rtcp-fb:\(Wire.audioPayloadType) transport-cc
        a=fmtp:\(Wire.audioPayloadType) minptime=10;useinbandfec=1
        a=extmap:\(Wire.audioLevelExtension) \(ExtensionKind.audioLevel.uri)
        """

    private static let video = """
        m=video 9 UDP/TLS/RTP/SAVPF \(Wire.videoPayloadType) \(Wire.rtxPayloadType)
        a=rtpmap:\(Wire.videoPayloadType) VP8/90000
        a=rtcp-fb:\(Wire.videoPayloadType) transport-cc
        a=rtcp-fb:\(Wire.videoPayloadType) ccm fir
        a=rtcp-fb:\(Wire.videoPayloadType) nack
        a=rtcp-fb:\(Wire.videoPayloadType) nack pli
        a=rtpmap:\(Wire.rtxPayloadType) rtx/90000
        a=fmtp:\(Wire.rtxPayloadType) apt=\(Wire.videoPayloadType)
        """

    private static func audioSources(_ sources: PublishedSources?) -> String {
        guard let sources else { return "" }
        return """
            a=msid:load microphone
            a=ssrc:\(sources.audio) cname:load
            """
    }

    private static func videoSources(_ sources: PublishedSources?) -> String {
        guard let sources else { return "" }
        return """
            a=msid:load camera
            a=ssrc-group:FID \(sources.video) \(sources.rtx)
            a=ssrc:\(sources.video) cname:load
            a=ssrc:\(sources.rtx) cname:load
            """
    }
}

/// Why an answer is of no use to a load.
struct AnswerError: Error, CustomStringConvertible { var description: String }

/// What a peer needs of sfud's answer.
struct Answer: Sendable {
    var fragment: String
    var password: String
    var fingerprint: Fingerprint
    /// A loopback candidate.
    var address: Address
    /// Of the slots; none where the peer sends.
    var audioSSRC: UInt32?
    var videoSSRC: UInt32?
    var rtxSSRC: UInt32?

    init(_ text: String) throws(AnswerError) {
        let session: SessionDescription
        do throws(SDPError) {
            session = try SessionDescription(text)
        } catch {
            throw AnswerError(description: "the answer is no SDP: line \(error.line)")
        }
        guard session.media.count == 2, let first = session.media.first else {
            throw AnswerError(description: "the answer has not two m-lines")
        }
        let own = first.transport.fragment != nil ? first.transport : session.transport
        let fingerprints = own.fingerprints + session.transport.fingerprints
        let fingerprint = fingerprints.first { $0.hash == "sha-256" }
        guard let fragment = own.fragment, let password = own.password, let fingerprint else {
            throw AnswerError(description: "the answer has no transport")
        }
        guard let address = Self.loopbackCandidate(text) else {
            throw AnswerError(
                description: "sfud has no candidate on 127.0.0.0/8, and a load stays there: "
                    + "start it with --udp 127.0.0.1:PORT"
            )
        }
        self.fragment = fragment
        self.password = password
        self.fingerprint = Fingerprint(algorithm: .sha256, digest: fingerprint.digest)
        self.address = address
        audioSSRC = first.sources.first?.ssrc.rawValue
        videoSSRC = session.media[1].sources.first?.ssrc.rawValue
        rtxSSRC = session.media[1].sources.dropFirst().first?.ssrc.rawValue
    }

    /// The first UDP candidate on 127.0.0.0/8.
    private static func loopbackCandidate(_ text: String) -> Address? {
        for line in text.split(whereSeparator: \.isNewline) where line.hasPrefix("a=candidate:") {
            let fields = line.split(separator: " ")
            guard fields.count > 5, fields[2].lowercased() == "udp", let port = UInt16(fields[5])
            else { continue }
            let octets = fields[4].split(separator: ".").compactMap { UInt8($0) }
            guard octets.count == 4, octets[0] == 127 else { continue }
            let number = octets.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            return Address(ipv4: number, port: port)
        }
        return nil
    }
}
