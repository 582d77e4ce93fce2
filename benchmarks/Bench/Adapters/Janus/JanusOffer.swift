import RTP
import SFU
import WorkerInterface

/// SDP offer of a publisher to Janus.
///
/// It says `setup:active`, so that Janus is the DTLS server and chooses the SRTP profile, as sfud
/// does.
struct JanusOffer {
    let text: String

    init(_ publication: Publication, _ local: LocalTransport) {
        var lines: [MediaDescription] = []
        if let ssrc = publication.audio {
            var line = MediaDescription(mid: Medium.audio.mid, [Self.opus], .sendonly)
            line.extensions = Self.extensions(without: [.rid, .repairedRID])
            line.sources = [Self.source(ssrc)]
            lines.append(line)
        }
        if !publication.layers.isEmpty {
            var line = MediaDescription(mid: Medium.video.mid, [Self.vp8, Self.rtx], .sendonly)
            line.extensions = Self.extensions(without: [.audioLevel])
            Self.describe(publication.layers, in: &line)
            lines.append(line)
        }
        text = SessionDescription(lines, local).text
    }

    /// Returns the header extensions that sfud is offered too.
    private static func extensions(without unwanted: Set<ExtensionKind>) -> [ExtensionAttribute] {
        OfferParameters.extensions.filter { !unwanted.contains($0.kind) }.map { id, kind in
            ExtensionAttribute(id: UInt16(id), direction: nil, uri: kind.uri)
        }
    }

    /// Describes simulcast by RIDs (RFC 8853), and a single layer by its SSRCs.
    ///
    /// Janus takes the first RID for the highest of its substreams.
    private static func describe(
        _ layers: [Publication.Layer],
        in line: inout MediaDescription
    ) {
        let rids = layers.reversed().compactMap(\.rid)
        line.rids = rids.map { RIDAttribute(id: $0, sends: true) }
        guard rids.isEmpty else {
            return line.simulcast = SimulcastAttribute(send: rids.map { [$0] })
        }
        for layer in layers {
            let pair = [source(layer.ssrc), source(layer.rtxSSRC)]
            line.sources += pair
            line.sourceGroups.append(
                SourceGroupAttribute(semantics: "FID", ssrcs: pair.map(\.ssrc))
            )
        }
    }

    private static func source(_ ssrc: UInt32) -> SourceAttribute {
        SourceAttribute(ssrc: SSRC(rawValue: ssrc), cname: "load")
    }

    private static var opus: FormatDescription {
        var format = FormatDescription(
            OfferParameters.audioPayloadType,
            "opus",
            clock: OfferParameters.audioClock
        )
        format.channels = 2
        format.parameters = "minptime=10;useinbandfec=1"
        return format
    }

    private static var vp8: FormatDescription {
        var format = FormatDescription(
            OfferParameters.videoPayloadType,
            "VP8",
            clock: OfferParameters.videoClock
        )
        format.feedback = ["transport-cc", "ccm fir", "nack", "nack pli"]
        return format
    }

    private static var rtx: FormatDescription {
        var format = FormatDescription(
            OfferParameters.rtxPayloadType,
            "rtx",
            clock: OfferParameters.videoClock
        )
        format.parameters = "apt=\(OfferParameters.videoPayloadType)"
        return format
    }
}

extension Medium {
    /// Mid of a publisher's m-line, in all offers.
    var mid: String { self == .audio ? "audio" : "video" }
}

extension FormatDescription {
    fileprivate init(_ payloadType: UInt8, _ name: String, clock: Int) {
        self.init(payloadType: payloadType)
        self.name = name
        clockRate = UInt32(clock)
    }
}

extension MediaDescription {
    /// Creates an m-line of a bundle, without session-level attributes.
    init(mid: String, _ formats: [FormatDescription], _ direction: Direction) {
        let isAudio = formats.first?.isNamed("opus") ?? false
        let kind = isAudio ? "audio" : "video"
        self.init(media: kind, port: 9, transportProtocol: "UDP/TLS/RTP/SAVPF")
        self.mid = mid
        self.formats = formats
        self.direction = direction
        address = "0.0.0.0"
        multiplexesRTCP = true
    }
}

extension SessionDescription {
    /// Creates one bundle of these m-lines over our side of a transport, as DTLS client.
    init(_ lines: [MediaDescription], _ local: LocalTransport) {
        self.init()
        identifier = local.seed >> 1
        version = 1
        bundles = [BundleGroup(mids: lines.compactMap(\.mid))]
        transport.fragment = local.fragment
        transport.password = local.password
        transport.fingerprints = [
            FingerprintAttribute(hash: "sha-256", digest: local.fingerprint.digest)
        ]
        transport.setup = .active
        media = lines
    }
}
