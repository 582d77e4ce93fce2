import RTP
import WorkerInterface

/// Codecs of an offered m-line that sfud forwards, in the offer's order.
struct FormatSelection: Sendable {
    /// Format mappings for the worker: each codec with its RTX payload type.
    private(set) var mappings: [FormatMapping] = []
    /// Formats for the answer: codecs, RED and RTX.
    private(set) var descriptions: [FormatDescription] = []

    /// Selects the formats of an m-line.
    ///
    /// Transport-wide feedback is accepted only if `transportWide`, i.e. with the sequence number
    /// extension.
    init(_ media: MediaDescription, kind: MediaKind, transportWide: Bool) {
        var formats = [MediaFormat?](repeating: nil, count: 128)
        for offered in media.formats {
            formats[Int(offered.payloadType)] = Self.codec(offered, kind: kind)
        }
        for offered in media.formats where Self.isRED(offered, kind: kind, formats: formats) {
            formats[Int(offered.payloadType)] = MediaFormat(codec: .red)
        }
        let repairs = Self.retransmissions(media, formats: formats)

        for offered in media.formats {
            let payloadType = offered.payloadType
            if let format = formats[Int(payloadType)] {
                let feedback = Self.feedback(offered, transportWide: transportWide)
                mappings.append(
                    FormatMapping(
                        format: format,
                        payloadType: payloadType,
                        rtxPayloadType: repairs.repairOf[Int(payloadType)],
                        feedback: feedback.kinds
                    )
                )
                var description = offered
                description.parameters = Self.parameters(of: offered, format: format)
                description.feedback = feedback.names
                descriptions.append(description)
            } else if let repaired = repairs.repairedBy[Int(payloadType)] {
                var description = offered
                description.parameters = "apt=\(repaired)"
                description.feedback = []
                descriptions.append(description)
            }
        }
    }

    /// Returns the formats for the answer, with a limit in bits a second on the Opus that is sent
    /// to us (RFC 7587 §6.1).
    ///
    /// A lower limit of the client's own stays.
    func descriptions(limitedTo bitrate: Int?) -> [FormatDescription] {
        guard let bitrate, bitrate < Self.mostOpus else { return descriptions }
        return descriptions.map { description in
            guard description.isNamed("opus") else { return description }
            let name = "maxaveragebitrate"
            let own = description.parameter(name).flatMap { Int($0) }
            let ours = max(bitrate, Self.leastOpus)
            let most = min(own ?? ours, ours)
            let others = description.parameters.split(separator: ";").filter { part in
                part.drop { $0 == " " }.prefix { $0 != "=" }.lowercased() != name
            }
            var limited = description
            limited.parameters = (others + ["\(name)=\(most)"]).joined(separator: ";")
            return limited
        }
    }

    /// Range of `maxaveragebitrate`, in bits a second (RFC 7587 §6.1).
    private static let leastOpus = 6_000
    private static let mostOpus = 510_000

    var isEmpty: Bool { mappings.isEmpty }
    var repairs: Bool { mappings.contains { $0.rtxPayloadType != nil } }
}

extension FormatSelection {
    private static func codec(_ offered: FormatDescription, kind: MediaKind) -> MediaFormat? {
        // With RTP and RTCP on one port, these payload types collide with RTCP types (RFC 5761 §4).
        guard !(64...95).contains(offered.payloadType) else { return nil }
        let format: MediaFormat? =
            switch offered.name.lowercased() {
            case "opus" where offered.channels == 2: MediaFormat(codec: .opus)
            case "vp8": MediaFormat(codec: .vp8)
            case "vp9": vp9(offered)
            case "h264": h264(offered)
            case "av1": av1(offered)
            default: nil
            }
        guard let format, format.codec.kind == kind,
            Int(offered.clockRate) == format.codec.clockRate
        else { return nil }
        return format
    }

    /// Accepts profiles 0 and 2; a missing parameter means 0 (RFC 9628 §6.1).
    private static func vp9(_ offered: FormatDescription) -> MediaFormat? {
        switch offered.parameter("profile-id") {
        case nil, "0": MediaFormat(codec: .vp9)
        case "2": MediaFormat(codec: .vp9, profile: 2)
        default: nil
        }
    }

    /// Accepts the main profile; a missing parameter means main (AV1 RTP §7.2.1).
    private static func av1(_ offered: FormatDescription) -> MediaFormat? {
        switch offered.parameter("profile") {
        case nil, "0": MediaFormat(codec: .av1)
        default: nil
        }
    }

    /// Accepts packetization mode 1 only (RFC 6184 §8.1).
    private static func h264(_ offered: FormatDescription) -> MediaFormat? {
        guard offered.parameter("packetization-mode") == "1" else { return nil }
        guard let level = offered.parameter("profile-level-id") else {
            // Browsers take a missing parameter for constrained baseline.
            return MediaFormat(codec: .h264)
        }
        return H264Profile(profileLevelID: level).map {
            MediaFormat(codec: .h264, profile: $0.rawValue)
        }
    }

    /// Returns whether the format is RED for Opus: all its blocks must be an accepted Opus format
    /// (RFC 2198 §5).
    private static func isRED(
        _ offered: FormatDescription,
        kind: MediaKind,
        formats: [MediaFormat?]
    ) -> Bool {
        guard kind == .audio, offered.isNamed("red"), offered.clockRate == 48_000,
            !(64...95).contains(offered.payloadType)
        else { return false }
        let blocks = offered.parameters[...].split(separator: "/")
        return !blocks.isEmpty
            && blocks.allSatisfy { block in
                guard let payloadType = UInt8(block), payloadType < 128 else { return false }
                return formats[Int(payloadType)]?.codec == .opus
            }
    }

    /// Returns the RTX payload type of each codec, and the reverse (RFC 4588 §8.1).
    ///
    /// An RTX format without an accepted codec is omitted, and so is a second one for the same
    /// codec.
    private static func retransmissions(
        _ media: MediaDescription,
        formats: [MediaFormat?]
    ) -> (repairOf: [UInt8?], repairedBy: [UInt8?]) {
        var repairOf = [UInt8?](repeating: nil, count: 128)
        var repairedBy = [UInt8?](repeating: nil, count: 128)
        for offered in media.formats where offered.isNamed("rtx") {
            guard let text = offered.parameter("apt"), let repaired = UInt8(text), repaired < 128,
                !(64...95).contains(offered.payloadType),
                let format = formats[Int(repaired)], format.codec != .red,
                Int(offered.clockRate) == format.codec.clockRate,
                repairOf[Int(repaired)] == nil
            else { continue }
            repairOf[Int(repaired)] = offered.payloadType
            repairedBy[Int(offered.payloadType)] = repaired
        }
        return (repairOf, repairedBy)
    }

    private static func feedback(
        _ offered: FormatDescription,
        transportWide: Bool
    ) -> (kinds: FeedbackKinds, names: [String]) {
        var kinds: FeedbackKinds = []
        var names: [String] = []
        for name in offered.feedback {
            let kind: FeedbackKinds
            switch name {
            case "nack": kind = .nack
            case "nack pli": kind = .pictureLoss
            case "ccm fir": kind = .fullIntraRequest
            case "transport-cc" where transportWide: kind = .transportWide
            case "goog-remb": kind = .remb
            default: continue
            }
            kinds.insert(kind)
            names.append(name)
        }
        return (kinds, names)
    }

    /// Returns the `a=fmtp` parameters of the answer.
    ///
    /// These are the parameters that both sides must state and, for Opus, the receiver's
    /// preferences.
    private static func parameters(
        of offered: FormatDescription,
        format: MediaFormat
    ) -> String {
        let kept: (Substring) -> Bool
        switch format.codec {
        case .red: return offered.parameters
        case .vp8: return ""
        // RFC 7587 §7.1: `sprop-` parameters describe the media that the author of the SDP sends.
        case .opus: kept = { !$0.hasPrefix("sprop-") }
        case .vp9: kept = { $0 == "profile-id" }
        case .av1: kept = { ["profile", "level-idx", "tier"].contains($0) }
        case .h264:
            kept = {
                ["profile-level-id", "packetization-mode", "level-asymmetry-allowed"].contains($0)
            }
        }
        var names: Set<String> = []
        let parts = offered.parameters.split(separator: ";").compactMap { part -> Substring? in
            let trimmed = part.drop { $0 == " " }
            let name = trimmed.prefix { $0 != "=" }.lowercased()
            // GStreamer writes level-asymmetry-allowed twice.
            return kept(name[...]) && names.insert(name).inserted ? trimmed : nil
        }
        return parts.joined(separator: ";")
    }
}

/// H.264 profiles that browsers support, lowest first.
enum H264Profile: UInt8 {
    case constrainedBaseline, baseline, main, constrainedHigh, high

    /// Parses `profile_idc` and the constraint flags (RFC 6184 §8.1, table 5).
    init?(profileLevelID text: Substring) {
        guard text.utf8.count == 6, let value = UInt32(text, radix: 16) else { return nil }
        let constraints = UInt8(truncatingIfNeeded: value >> 8)
        switch UInt8(truncatingIfNeeded: value >> 16) {
        case 0x42 where constraints & 0x4f == 0x40: self = .constrainedBaseline
        case 0x42 where constraints & 0x4f == 0x00: self = .baseline
        case 0x4d where constraints & 0x8f == 0x80: self = .constrainedBaseline
        case 0x4d where constraints & 0xaf == 0x00: self = .main
        case 0x58 where constraints & 0xcf == 0xc0: self = .constrainedBaseline
        case 0x58 where constraints & 0xcf == 0x80: self = .baseline
        case 0x64 where constraints == 0x00: self = .high
        case 0x64 where constraints == 0x0c: self = .constrainedHigh
        default: return nil
        }
    }
}
