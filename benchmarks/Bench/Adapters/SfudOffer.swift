import RTP
import SFU
import WorkerInterface

/// An offer like Chromium's, reduced to the needs of a load.
struct SfudOffer {
    private let local: LocalTransport
    private(set) var mids = 0
    private var lines: [String] = []

    init(_ local: LocalTransport) { self.local = local }

    /// Adds the m-lines of a publication; returns its send format.
    mutating func publish(_ publication: Publication) -> SendFormat {
        var format = SendFormat()
        if let ssrc = publication.audio {
            format.audio = line(.audio, rtx: nil)
            add(.audio, "sendonly", ["a=msid:load microphone", "a=ssrc:\(ssrc) cname:load"])
        }
        if !publication.layers.isEmpty {
            format.video = line(.video, rtx: OfferParameters.rtxPayloadType)
            add(.video, "sendonly", ["a=msid:load camera"] + sources(publication.layers))
        }
        return format
    }

    /// Adds m-lines for receiving; returns the mid of the first.
    mutating func receive(_ medium: Medium, count: Int) -> Int {
        let first = mids
        for _ in 0..<count { add(medium, "recvonly", []) }
        return first
    }

    /// The complete offer.
    var text: String {
        let bundle = (0..<mids).map(String.init).joined(separator: " ")
        let session = [
            "v=0", "o=- \(local.seed >> 1) 1 IN IP4 127.0.0.1", "s=-", "t=0 0",
            "a=group:BUNDLE \(bundle)", "a=extmap-allow-mixed",
        ]
        return (session + lines).joined(separator: "\r\n") + "\r\n"
    }

    private func line(_ medium: Medium, rtx: UInt8?) -> SendFormat.Line {
        var extensions = ExtensionMap()
        for (id, kind) in OfferParameters.extensions { extensions[kind] = id }
        return SendFormat.Line(
            mid: "\(mids)",
            payloadType: medium == .audio
                ? OfferParameters.audioPayloadType : OfferParameters.videoPayloadType,
            rtxPayloadType: rtx,
            extensions: extensions
        )
    }

    /// Returns the source lines of one video: SSRC pairs, or RIDs without SSRCs (RFC 8853 §5).
    private func sources(_ layers: [Publication.Layer]) -> [String] {
        let rids = layers.compactMap(\.rid)
        guard rids.isEmpty else {
            return rids.map { "a=rid:\($0) send" }
                + ["a=simulcast:send \(rids.joined(separator: ";"))"]
        }
        return layers.flatMap { layer in
            [
                "a=ssrc-group:FID \(layer.ssrc) \(layer.rtxSSRC)",
                "a=ssrc:\(layer.ssrc) cname:load", "a=ssrc:\(layer.rtxSSRC) cname:load",
            ]
        }
    }

    private mutating func add(_ medium: Medium, _ direction: String, _ more: [String]) {
        lines += medium == .audio ? Self.audio : Self.video
        lines += [
            "c=IN IP4 0.0.0.0", "a=mid:\(mids)", "a=\(direction)", "a=ice-ufrag:\(local.fragment)",
            "a=ice-pwd:\(local.password)", "a=fingerprint:sha-256 \(local.fingerprintText)",
            "a=setup:actpass", "a=rtcp-mux", "a=rtcp-rsize",
        ]
        // Audio levels do not apply to video; RIDs do not apply to audio.
        let unwanted: Set<ExtensionKind> =
            medium == .audio ? [.rid, .repairedRID] : [.audioLevel]
        for (id, kind) in OfferParameters.extensions where !unwanted.contains(kind) {
            lines.append("a=extmap:\(id) \(kind.uri)")
        }
        lines += more
        mids += 1
    }

    private static let audio = [
        "m=audio 9 UDP/TLS/RTP/SAVPF \(OfferParameters.audioPayloadType)",
        "a=rtpmap:\(OfferParameters.audioPayloadType) opus/48000/2",
        "a=rtcp-fb:\(OfferParameters.audioPayloadType) transport-cc",
        "a=fmtp:\(OfferParameters.audioPayloadType) minptime=10;useinbandfec=1",
    ]

    private static let video = [
        "m=video 9 UDP/TLS/RTP/SAVPF \(OfferParameters.videoPayloadType) \(OfferParameters.rtxPayloadType)",
        "a=rtpmap:\(OfferParameters.videoPayloadType) VP8/90000",
        "a=rtcp-fb:\(OfferParameters.videoPayloadType) transport-cc",
        "a=rtcp-fb:\(OfferParameters.videoPayloadType) ccm fir",
        "a=rtcp-fb:\(OfferParameters.videoPayloadType) nack",
        "a=rtcp-fb:\(OfferParameters.videoPayloadType) nack pli",
        "a=rtpmap:\(OfferParameters.rtxPayloadType) rtx/90000",
        "a=fmtp:\(OfferParameters.rtxPayloadType) apt=\(OfferParameters.videoPayloadType)",
    ]
}

/// Contents of sfud's answer that a client needs.
struct SfudAnswer {
    var remote: RemoteTransport
    /// SSRCs of each m-line, by mid; empty if the client sends on it.
    var sources: [String: [UInt32]] = [:]

    init(_ text: String) throws(AdapterError) {
        let session: SessionDescription
        do throws(SDPError) {
            session = try SessionDescription(text)
        } catch {
            throw AdapterError("the answer is no SDP: line \(error.line)")
        }
        guard let first = session.media.first else { throw AdapterError("an empty answer") }
        let own = first.transport.fragment != nil ? first.transport : session.transport
        let fingerprints = own.fingerprints + session.transport.fingerprints
        let fingerprint = fingerprints.first { $0.hash == "sha-256" }
        guard let fragment = own.fragment, let password = own.password, let fingerprint else {
            throw AdapterError("the answer has no transport")
        }
        guard let address = Self.loopbackCandidate(text) else {
            throw AdapterError(
                "sfud has no candidate on 127.0.0.0/8, and a load stays there: "
                    + "start it with --udp 127.0.0.1:PORT"
            )
        }
        let credentials = RemoteCredentials(
            fragment: fragment,
            password: password,
            fingerprint: Fingerprint(algorithm: .sha256, digest: fingerprint.digest),
            localDTLSRole: .client,
            isControlling: true
        )
        remote = RemoteTransport(security: .full(credentials), address: address)
        for media in session.media {
            guard let mid = media.mid else { continue }
            sources[mid] = media.sources.map(\.ssrc.rawValue)
        }
    }

    /// Returns the first UDP candidate on 127.0.0.0/8.
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
