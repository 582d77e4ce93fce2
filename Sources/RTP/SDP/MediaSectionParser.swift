/// Parser of one m-section.
///
/// `a=rtpmap`, `a=fmtp` and `a=rtcp-fb` come in any order, so formats are looked up in a table.
struct MediaSectionParser {
    private var media: MediaDescription
    /// Position of each payload type in `media.formats`, or 255.
    private var places = [UInt8](repeating: 255, count: 128)
    /// Feedback of `a=rtcp-fb:*`.
    private var commonFeedback: [String] = []

    init(_ line: SDPLines.Line) throws(SDPError) {
        let fields = line.value.fields(limit: 4)
        // A number of ports after a slash is refused: it makes no sense with multiplexing.
        guard fields.count == 4, fields[0].isToken, let port: UInt16 = fields[1].decimal(),
            !fields[3].trimmed.isEmpty
        else {
            throw line.error("m= is not of the form media port protocol formats")
        }
        media = MediaDescription(
            media: String(fields[0]),
            port: port,
            transportProtocol: String(fields[2])
        )
        media.line = line.number
        guard media.isRTP else {
            media.otherFormats = String(fields[3].trimmed)
            return
        }
        for field in fields[3].fields() {
            guard let payloadType: UInt8 = field.decimal(to: 127) else {
                throw line.error("payload type is not a number from 0 to 127")
            }
            // A duplicate counts once.
            guard places[Int(payloadType)] == 255 else { continue }
            places[Int(payloadType)] = UInt8(media.formats.count)
            media.formats.append(FormatDescription(payloadType: payloadType))
        }
    }

    mutating func finish() -> MediaDescription {
        for index in media.formats.indices {
            for feedback in commonFeedback
            where !media.formats[index].feedback.contains(feedback) {
                media.formats[index].feedback.append(feedback)
            }
        }
        return media
    }

    mutating func read(
        name: Substring,
        value: Substring,
        line: SDPLines.Line
    ) throws(SDPError) {
        guard try !media.transport.read(name: name, value: value, line: line) else { return }
        switch name {
        case "mid": try readMID(value, line)
        case "rtcp-mux": media.multiplexesRTCP = true
        case "rtcp-mux-only": media.multiplexesRTCP = true
        case "rtcp-rsize": media.reducedSizeRTCP = true
        case "rtcp-xr": readExtendedReports(value)
        case "bundle-only": media.isBundleOnly = true
        case "extmap-allow-mixed": media.mixesExtensionForms = true
        case "rtpmap": try readMap(value, line)
        case "fmtp": readParameters(value)
        case "rtcp-fb": try readFeedback(value, line)
        case "extmap": try readExtension(value, line)
        case "ssrc": try readSource(value, line)
        case "ssrc-group": try readSourceGroup(value, line)
        case "msid": readStreams(value)
        case "rid": try readRID(value, line)
        case "simulcast": try readSimulcast(value, line)
        default:
            if let direction = Direction(rawValue: String(name)) { media.direction = direction }
        }
    }
}

extension MediaSectionParser {
    private mutating func readMID(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        guard value.isToken, value.utf8.count <= SDPLimits.midBytes else {
            throw line.error("mid is not a token of at most \(SDPLimits.midBytes) bytes")
        }
        guard media.mid == nil else { throw line.error("second mid of an m-line") }
        media.mid = String(value)
    }

    /// Returns the position of the payload type's format, or `nil` if the m-line does not list it.
    private func place(of field: Substring) -> Int? {
        guard let payloadType: UInt8 = field.decimal(to: 127) else { return nil }
        let place = places[Int(payloadType)]
        return place == 255 ? nil : Int(place)
    }

    private mutating func readMap(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        var rest = value
        let number = rest.cut(at: " ")
        guard (number.decimal(to: 127) as UInt8?) != nil else {
            throw line.error("payload type is not a number from 0 to 127")
        }
        let parts = rest.trimmed.fields("/")
        guard (2...3).contains(parts.count), parts[0].isToken,
            let clockRate: UInt32 = parts[1].decimal(),
            let channels: UInt8 = parts.count == 3 ? parts[2].decimal() : 1
        else { throw line.error("rtpmap is not of the form type name/rate/channels") }
        guard let place = place(of: number) else { return }

        var format = media.formats[place]
        let isFirst = format.name.isEmpty
        let isSame =
            format.isNamed(parts[0].lowercased()) && format.clockRate == clockRate
            && format.channels == channels
        guard isFirst || isSame else {
            throw line.error("payload type \(number) has two codecs")
        }
        format.name = String(parts[0])
        format.clockRate = clockRate
        format.channels = channels
        media.formats[place] = format
    }

    /// Reads `a=fmtp`; the first one of a payload type counts.
    private mutating func readParameters(_ value: Substring) {
        var rest = value
        guard let place = place(of: rest.cut(at: " ")) else { return }
        if media.formats[place].parameters.isEmpty {
            media.formats[place].parameters = String(rest.trimmed)
        }
    }

    private mutating func readFeedback(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        var rest = value
        let number = rest.cut(at: " ")
        let kind = rest.fields().joined(separator: " ")
        if number == "*" {
            try Self.add(kind, to: &commonFeedback, line)
        } else if let place = place(of: number) {
            try Self.add(kind, to: &media.formats[place].feedback, line)
        }
    }

    /// Reads `a=rtcp-xr`, of which only `rcvr-rtt` matters; an optional size may follow its mode.
    private mutating func readExtendedReports(_ value: Substring) {
        for format in value.fields() {
            var mode = format
            guard mode.cut(at: "=") == "rcvr-rtt" else { continue }
            media.receiverRoundTrip = ReceiverRoundTrip(rawValue: String(mode.cut(at: ":")))
        }
    }

    private static func add(
        _ kind: String,
        to list: inout [String],
        _ line: SDPLines.Line
    ) throws(SDPError) {
        guard !list.contains(kind) else { return }
        guard list.count < SDPLimits.feedbackKinds else {
            throw line.error("more than \(SDPLimits.feedbackKinds) kinds of feedback")
        }
        list.append(kind)
    }

    private mutating func readExtension(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        let fields = value.fields()
        guard let first = fields.first, fields.count >= 2 else {
            throw line.error("extmap is not of the form id uri")
        }
        var rest = first
        // RFC 8285 §7: 4096 to 4351 are placeholders for ids that are chosen later.
        guard let id: UInt16 = rest.cut(at: "/").decimal(to: 4351), id != 0 else {
            throw line.error("extmap id is not a number from 1 to 4351")
        }
        let direction = rest.isEmpty ? nil : Direction(rawValue: String(rest))
        guard rest.isEmpty || direction != nil else {
            throw line.error("extmap direction is unknown")
        }
        let uri = String(fields[1])
        guard !media.extensions.contains(where: { $0.id == id && $0.uri != uri }) else {
            throw line.error("extmap id \(id) has two meanings")
        }
        guard media.extensions.count < SDPLimits.extensions else {
            throw line.error("more than \(SDPLimits.extensions) header extensions")
        }
        media.extensions.append(ExtensionAttribute(id: id, direction: direction, uri: uri))
    }
}

extension MediaSectionParser {
    private mutating func readSource(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        var rest = value
        guard let number: UInt32 = rest.cut(at: " ").decimal() else {
            throw line.error("ssrc is not a number of 32 bits")
        }
        let ssrc = SSRC(rawValue: number)
        let attribute = rest.cut(at: ":")
        let cname = attribute == "cname" ? String(rest) : nil
        guard let place = media.sources.firstIndex(where: { $0.ssrc == ssrc }) else {
            guard media.sources.count < SDPLimits.sources else {
                throw line.error("more than \(SDPLimits.sources) sources")
            }
            media.sources.append(SourceAttribute(ssrc: ssrc, cname: cname))
            return
        }
        if let cname { media.sources[place].cname = cname }
    }

    private mutating func readSourceGroup(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        let fields = value.fields()
        guard let semantics = fields.first, semantics.isToken,
            fields.count <= SDPLimits.sources + 1,
            media.sourceGroups.count < SDPLimits.sourceGroups
        else { throw line.error("ssrc-group is malformed, or there are too many") }
        var ssrcs: [SSRC] = []
        for field in fields.dropFirst() {
            guard let number: UInt32 = field.decimal() else {
                throw line.error("ssrc is not a number of 32 bits")
            }
            ssrcs.append(SSRC(rawValue: number))
        }
        media.sourceGroups.append(
            SourceGroupAttribute(semantics: String(semantics), ssrcs: ssrcs)
        )
    }

    /// Reads `a=msid`; the first stream counts, and its track is optional (RFC 8830 §2).
    private mutating func readStreams(_ value: Substring) {
        let fields = value.fields()
        guard media.streams == nil, let stream = fields.first else { return }
        media.streams = StreamAttribute(
            stream: String(stream),
            track: fields.count > 1 ? String(fields[1]) : ""
        )
    }

    private mutating func readRID(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        let fields = value.fields(limit: 3)
        guard fields.count >= 2, fields[0].isRID, fields[0].utf8.count <= SDPLimits.ridBytes,
            fields[1] == "send" || fields[1] == "recv"
        else { throw line.error("rid is not of the form name send|recv") }
        guard !media.rids.contains(where: { $0.id == fields[0] }) else {
            throw line.error("rid is there twice")
        }
        guard media.rids.count < SDPLimits.rids else {
            throw line.error("more than \(SDPLimits.rids) rids")
        }
        var rid = RIDAttribute(id: String(fields[0]), sends: fields[1] == "send")
        for part in (fields.count == 3 ? fields[2] : "").fields(";") {
            var list = part.trimmed
            guard list.hasPrefix("pt=") else {
                rid.restrictions += rid.restrictions.isEmpty ? "\(list)" : ";\(list)"
                continue
            }
            _ = list.cut(at: "=")
            for number in list.fields(",", limit: SDPLimits.formats) {
                guard let payloadType: UInt8 = number.decimal(to: 127) else {
                    throw line.error("rid names no payload type")
                }
                rid.payloadTypes.append(payloadType)
            }
        }
        media.rids.append(rid)
    }

    private mutating func readSimulcast(
        _ value: Substring,
        _ line: SDPLines.Line
    ) throws(SDPError) {
        let fields = value.fields()
        guard media.simulcast == nil, fields.count == 2 || fields.count == 4 else {
            throw line.error("simulcast is malformed, or there twice")
        }
        var simulcast = SimulcastAttribute()
        for index in stride(from: 0, to: fields.count, by: 2) {
            let streams = fields[index + 1].fields(";").map { stream in
                stream.fields(",").map { alternative in
                    String(alternative.hasPrefix("~") ? alternative.dropFirst() : alternative)
                }
            }
            guard streams.count <= SDPLimits.rids,
                streams.allSatisfy({ 1...SDPLimits.rids ~= $0.count })
            else { throw line.error("simulcast has none or too many streams") }
            switch fields[index] {
            case "send" where simulcast.send.isEmpty: simulcast.send = streams
            case "recv" where simulcast.receive.isEmpty: simulcast.receive = streams
            default: throw line.error("simulcast is not of the form send|recv list")
            }
        }
        media.simulcast = simulcast
    }
}
