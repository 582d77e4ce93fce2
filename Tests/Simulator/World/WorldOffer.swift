import Contract
import HostilePeer
import RTP
import WorkerInterface

/// A simulated client's capabilities, and the offer that expresses them.
struct WorldOffer {
    var fragment: String
    var password: String
    var fingerprint: Fingerprint
    /// Its microphone and the encodings of its camera.
    var layers: [SentLayer] = []
    /// Number of pairs of an audio and a video m-line to receive on.
    var slots = 0
    /// Returns the mids of the slots of a kind.
    func mids(_ kind: MediaKind) -> [String] {
        let kinds = Set(layers.map(\.kind)).count
        return (0..<slots).map { String(kinds + 2 * $0 + (kind == .audio ? 0 : 1)) }
    }

    /// Returns the mids of the slots that follow active speakers.
    func mids(_ kind: MediaKind, of seat: SimulatedParticipant) -> [String] {
        seat.isAdversary ? mids(kind).suffix(2) : mids(kind)
    }

    /// Whether lost packets are retransmitted as RTX, or unchanged.
    var takesRTX = true
    /// Whether it sends transport-wide feedback.
    var tellsArrivals = false
    /// Whether it negotiates absolute send times.
    var takesSendTimes = false
    /// Whether it also negotiates all other header extensions.
    var carriesEverything = false
    /// Offer counter, for RFC 3264 §8.
    var version = 1

    var text: String {
        var sections: [[String]] = []
        let video = layers.filter { $0.kind == .video }
        for layer in layers where layer.kind == .audio { sections.append(microphone(layer)) }
        if !video.isEmpty { sections.append(camera(video)) }
        for _ in 0..<slots {
            sections.append(format(.audio) + ["a=recvonly"])
            sections.append(format(.video) + ["a=recvonly"])
        }
        return OfferedDescription(
            version: version,
            fragment: fragment,
            password: password,
            fingerprint: fingerprint
        ).text(of: sections)
    }

    private func microphone(_ layer: SentLayer) -> [String] {
        format(.audio) + ["a=sendonly", "a=msid:s audio", "a=ssrc:\(layer.ssrc) cname:c"]
    }

    private func camera(_ layers: [SentLayer]) -> [String] {
        let lines = format(.video) + ["a=sendonly", "a=msid:s video"]
        let rids = layers.compactMap(\.rid)
        guard rids.isEmpty else {
            return lines + rids.map { "a=rid:\($0) send" }
                + ["a=simulcast:send \(rids.joined(separator: ";"))"]
        }
        return lines
            + layers.flatMap {
                [
                    "a=ssrc-group:FID \($0.ssrc) \($0.rtxSSRC)", "a=ssrc:\($0.ssrc) cname:c",
                    "a=ssrc:\($0.rtxSSRC) cname:c",
                ]
            }
    }

    private func format(_ kind: MediaKind) -> [String] {
        let audio = SimulatedTrack.audioPayloadType
        let (video, rtx) = (SimulatedTrack.videoPayloadType, SimulatedTrack.rtxPayloadType)
        let isAudio = kind == .audio
        var lines = ["a=extmap:\(SentLayer.midID) \(ExtensionKind.mid.uri)"]
        if isAudio {
            lines.append("a=extmap:\(SentLayer.levelID) \(ExtensionKind.audioLevel.uri)")
        } else {
            lines += [
                "a=extmap:\(SentLayer.ridID) \(ExtensionKind.rid.uri)",
                "a=extmap:\(SentLayer.repairedID) \(ExtensionKind.repairedRID.uri)",
            ]
        }
        if tellsArrivals {
            let uri = ExtensionKind.transportSequenceNumber.uri
            lines += [
                "a=extmap:\(SentLayer.transportNumberID) \(uri)",
                "a=rtcp-fb:\(isAudio ? audio : video) transport-cc",
            ]
        }
        lines += further(kind)
        guard !isAudio else {
            return [
                "m=audio 9 UDP/TLS/RTP/SAVPF \(audio)", "a=rtpmap:\(audio) opus/48000/2",
            ] + lines
        }
        lines += ["a=rtcp-fb:\(video) nack", "a=rtcp-fb:\(video) nack pli"]
        guard takesRTX else {
            return ["m=video 9 UDP/TLS/RTP/SAVPF \(video)", "a=rtpmap:\(video) VP8/90000"] + lines
        }
        return [
            "m=video 9 UDP/TLS/RTP/SAVPF \(video) \(rtx)", "a=rtpmap:\(video) VP8/90000",
        ] + lines + ["a=rtpmap:\(rtx) rtx/90000", "a=fmtp:\(rtx) apt=\(video)"]
    }

    /// Returns extensions that honest clients negotiate only in histories with an adversary.
    private func further(_ kind: MediaKind) -> [String] {
        var kinds: [(UInt8, ExtensionKind)] = []
        let extensions = Self.everyExtension
        if takesSendTimes { kinds.append((extensions.sendTime, .absoluteSendTime)) }
        if carriesEverything {
            kinds.append((extensions.captureTime, .absoluteCaptureTime))
            if kind == .video {
                kinds.append((extensions.descriptor, .dependencyDescriptor))
                kinds.append((extensions.layersAllocation, .videoLayersAllocation))
            }
        }
        return kinds.map { "a=extmap:\($0) \($1.uri)" }
    }

    /// Ids of all extensions.
    static let everyExtension: ForgedMedia.Extensions = {
        var extensions = ForgedMedia.Extensions()
        extensions.audioLevel = SentLayer.levelID
        extensions.sendTime = 2
        extensions.transportSequence = SentLayer.transportNumberID
        extensions.mid = SentLayer.midID
        extensions.layersAllocation = 8
        extensions.captureTime = 9
        extensions.descriptor = 12
        return extensions
    }()
}

/// The parts of an answer that a client needs.
struct WorldAnswer {
    var fragment: String
    var password: String
    /// Worker of the transport.
    var worker: Int
    /// Media SSRC of each RTX SSRC.
    var repaired: [UInt32: UInt32] = [:]

    init?(_ text: String) {
        guard let session = try? SessionDescription(text), let media = session.media.first,
            let fragment = media.transport.fragment ?? session.transport.fragment,
            let password = media.transport.password ?? session.transport.password
        else { return nil }
        self.fragment = fragment
        self.password = password
        worker = text.contains(" 5004 typ") ? 0 : 1
        for line in text.split(whereSeparator: \.isNewline) {
            let prefix = "a=ssrc-group:FID "
            guard line.hasPrefix(prefix) else { continue }
            let numbers = line.dropFirst(prefix.count).split(separator: " ").compactMap {
                UInt32($0)
            }
            if numbers.count == 2 { repaired[numbers[1]] = numbers[0] }
        }
    }
}
