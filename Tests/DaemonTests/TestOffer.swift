import RTP

/// A small offer: the parts that the control plane reads, not a browser's.
struct TestOffer {
    private let lines: [[Substring]]
    /// Number of the peer connection, which has a certificate of its own.
    var peer = 0xab
    var session = 1

    /// Makes an offer of lines, each as `mid:kind:direction`, or `mid:kind:direction:rid,rid` for
    /// simulcast.
    init(_ lines: [String]) { self.lines = lines.map { $0.split(separator: ":") } }

    var text: String {
        let mids = lines.map { String($0[0]) }.joined(separator: " ")
        let byte = String(peer, radix: 16, uppercase: true)
        let fingerprint = (0..<32).map { _ in peer < 16 ? "0\(byte)" : byte }.joined(separator: ":")
        var text = """
            v=0
            o=- \(session) 1 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE \(mids)
            a=ice-ufrag:abcd\(peer)
            a=ice-pwd:abcdefghijklmnopqrstuvwx
            a=fingerprint:sha-256 \(fingerprint)
            a=setup:actpass

            """
        for line in lines { text += section(line) }
        return text.split(separator: "\n").joined(separator: "\r\n") + "\r\n"
    }

    private func section(_ line: [Substring]) -> String {
        let isAudio = line[1] == "audio"
        return """
            m=\(line[1]) 9 UDP/TLS/RTP/SAVPF \(isAudio ? 111 : 96)
            c=IN IP4 0.0.0.0
            a=mid:\(line[0])
            a=\(line[2])
            a=rtcp-mux
            a=rtpmap:\(isAudio ? "111 opus/48000/2" : "96 VP8/90000")

            """ + (line.count > 3 ? simulcast(line[3].split(separator: ",")) : "")
    }

    private func simulcast(_ rids: [Substring]) -> String {
        let lines =
            ["a=extmap:4 \(ExtensionKind.mid.uri)", "a=extmap:10 \(ExtensionKind.rid.uri)"]
            + rids.map { "a=rid:\($0) send" }
            + ["a=simulcast:send \(rids.joined(separator: ";"))"]
        return lines.joined(separator: "\n") + "\n"
    }
}
