extension SessionDescription {
    /// Description as text, with CRLF line ends.
    public var text: String {
        var writer = SDPWriter()
        writer.line("v=0")
        writer.line("o=- \(identifier) \(version) IN IP4 127.0.0.1")
        writer.line("s=-")
        writer.line("t=0 0")
        for bundle in bundles {
            writer.attribute("group", (["BUNDLE"] + bundle.mids).joined(separator: " "))
        }
        if isICELite { writer.flag("ice-lite") }
        if !iceOptions.isEmpty {
            writer.attribute("ice-options", iceOptions.joined(separator: " "))
        }
        if mixesExtensionForms { writer.flag("extmap-allow-mixed") }
        if let direction { writer.flag(direction.rawValue) }
        transport.write(to: &writer)
        for section in media { section.write(to: &writer) }
        return writer.text
    }
}

/// Writer of SDP lines.
struct SDPWriter {
    private(set) var text = ""

    mutating func line(_ line: String) { text += line + "\r\n" }
    mutating func flag(_ name: String) { line("a=\(name)") }
    mutating func attribute(_ name: String, _ value: String) { line("a=\(name):\(value)") }
}

extension TransportAttributes {
    func write(to writer: inout SDPWriter) {
        if let fragment { writer.attribute("ice-ufrag", fragment) }
        if let password { writer.attribute("ice-pwd", password) }
        for fingerprint in fingerprints {
            writer.attribute("fingerprint", "\(fingerprint.hash) \(fingerprint.digestText)")
        }
        if let setup { writer.attribute("setup", setup.rawValue) }
    }
}

extension MediaDescription {
    func write(to writer: inout SDPWriter) {
        let formatList =
            isRTP ? formats.map { "\($0.payloadType)" }.joined(separator: " ") : otherFormats
        writer.line("m=\(media) \(port) \(transportProtocol) \(formatList)")
        if let address {
            writer.line(
                "c=IN \(address.utf8.contains(UInt8(ascii: ":")) ? "IP6" : "IP4") \(address)"
            )
        }
        for candidate in candidates { writer.attribute("candidate", candidate.text) }
        if !candidates.isEmpty { writer.flag("end-of-candidates") }
        transport.write(to: &writer)
        if let mid { writer.attribute("mid", mid) }
        if isBundleOnly { writer.flag("bundle-only") }
        writeExtensions(to: &writer)
        if let direction { writer.flag(direction.rawValue) }
        if let streams { writer.attribute("msid", "\(streams.stream) \(streams.track)") }
        if multiplexesRTCP { writer.flag("rtcp-mux") }
        if reducedSizeRTCP { writer.flag("rtcp-rsize") }
        if let receiverRoundTrip {
            writer.attribute("rtcp-xr", "rcvr-rtt=\(receiverRoundTrip.rawValue)")
        }
        for format in formats { format.write(to: &writer) }
        writeSimulcast(to: &writer)
        writeSources(to: &writer)
    }

    private func writeExtensions(to writer: inout SDPWriter) {
        if mixesExtensionForms { writer.flag("extmap-allow-mixed") }
        for item in extensions {
            let direction = item.direction.map { "/\($0.rawValue)" } ?? ""
            writer.attribute("extmap", "\(item.id)\(direction) \(item.uri)")
        }
    }

    private func writeSimulcast(to writer: inout SDPWriter) {
        for rid in rids {
            var restrictions = rid.payloadTypes.map { "\($0)" }.joined(separator: ",")
            if !restrictions.isEmpty { restrictions = "pt=" + restrictions }
            if !restrictions.isEmpty, !rid.restrictions.isEmpty { restrictions += ";" }
            restrictions += rid.restrictions
            if !restrictions.isEmpty { restrictions = " " + restrictions }
            writer.attribute("rid", "\(rid.id) \(rid.sends ? "send" : "recv")\(restrictions)")
        }
        guard let simulcast else { return }
        var parts: [String] = []
        for (name, streams) in [("send", simulcast.send), ("recv", simulcast.receive)]
        where !streams.isEmpty {
            parts.append(name)
            parts.append(streams.map { $0.joined(separator: ",") }.joined(separator: ";"))
        }
        writer.attribute("simulcast", parts.joined(separator: " "))
    }

    private func writeSources(to writer: inout SDPWriter) {
        for group in sourceGroups {
            let ssrcs = group.ssrcs.map { "\($0.rawValue)" }.joined(separator: " ")
            writer.attribute("ssrc-group", "\(group.semantics) \(ssrcs)")
        }
        for source in sources {
            let cname = source.cname.map { " cname:\($0)" } ?? ""
            writer.attribute("ssrc", "\(source.ssrc.rawValue)\(cname)")
        }
    }
}

extension FormatDescription {
    func write(to writer: inout SDPWriter) {
        if !name.isEmpty {
            let channels = channels == 1 ? "" : "/\(channels)"
            writer.attribute("rtpmap", "\(payloadType) \(name)/\(clockRate)\(channels)")
        }
        for kind in feedback { writer.attribute("rtcp-fb", "\(payloadType) \(kind)") }
        if !parameters.isEmpty { writer.attribute("fmtp", "\(payloadType) \(parameters)") }
    }
}

extension CandidateAttribute {
    /// Text after `a=candidate:`.
    fileprivate var text: String {
        let (name, ending) =
            switch transport {
            case .udp: ("udp", "")
            case .tcpPassive: ("tcp", " tcptype passive")
            }
        return "\(foundation) 1 \(name) \(priority) \(address) \(port) typ host\(ending)"
    }
}
