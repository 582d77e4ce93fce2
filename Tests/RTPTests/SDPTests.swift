import RTP
import Testing

/// Builds a description with one video m-line and the given extra lines.
private func description(_ lines: String..., session: [String] = []) -> String {
    (["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0"] + session
        + ["m=video 9 UDP/TLS/RTP/SAVPF 96 97", "c=IN IP4 0.0.0.0"] + lines)
        .map { $0 + "\r\n" }.joined()
}

private func failure(_ text: String) -> SDPError? {
    do {
        _ = try SessionDescription(text)
        return nil
    } catch { return error }
}

struct SDPTests {
    @Test(arguments: [
        ("UDP/TLS/RTP/SAVPF", true), ("RTP/AVP", true), ("TCP/TLS/RTP/SAVP", true),
        ("UDP/DTLS/SCTP", false), ("RTP", false), ("UDP/RTP", false), ("UDP/RTPX/AVP", false),
        ("XRTP/AVP", false), ("rtp/avp", false), ("", false), ("/", false), ("UDP/RTP/", true),
    ])
    func `a protocol with a profile of RTP is one`(name: String, isRTP: Bool) {
        let media = MediaDescription(media: "video", port: 9, transportProtocol: name)
        #expect(media.isRTP == isRTP)
    }

    @Test func `reads what a client writes, in any order of lines`() throws {
        let text = description(
            "a=fmtp:97 apt=96;rtx-time=3000",
            "a=rtcp-fb:* nack pli",
            "a=mid:v-1",
            "a=rtcp-mux",
            "a=rtcp-rsize",
            "a=extmap:3/sendonly urn:ietf:params:rtp-hdrext:sdes:mid",
            "a=rtpmap:96 VP8/90000",
            "a=rtpmap:97 rtx/90000",
            "a=rtcp-fb:96 ccm  fir",
            "a=ssrc-group:FID 1 2",
            "a=ssrc:1 cname:x",
            "a=ssrc:1 msid:s t",
            "a=ssrc:2 cname:x",
            "a=rid:q send pt=96,97;max-width=320",
            "a=rid:h send",
            "a=simulcast:send ~q;h,q recv x",
            "a=sendonly",
            "a=candidate:nonsense",
            "a=setup:actpass",
            "a=ice-ufrag:abcd",
            "a=ice-pwd:0123456789012345678901",
            "a=unheard-of:5",
            session: ["a=group:BUNDLE v-1", "a=group:LS v-1", "a=extmap-allow-mixed"]
        )
        let session = try SessionDescription(text)
        #expect(session.bundles == [BundleGroup(line: 5, mids: ["v-1"])])
        #expect(session.mixesExtensionForms)
        let media = try #require(session.media.first)
        #expect(media.line == 8)
        #expect(media.mid == "v-1")
        #expect(media.direction == .sendonly)
        #expect(media.formats.map(\.name) == ["VP8", "rtx"])
        #expect(media.formats[0].feedback == ["ccm fir", "nack pli"])
        #expect(media.formats[1].parameter("apt") == "96")
        #expect(
            media.extensions
                == [ExtensionAttribute(id: 3, direction: .sendonly, uri: ExtensionKind.mid.uri)]
        )
        #expect(media.sources.map(\.ssrc.rawValue) == [1, 2])
        #expect(media.sourceGroups.first?.semantics == "FID")
        #expect(media.rids.first?.payloadTypes == [96, 97])
        #expect(media.rids.first?.restrictions == "max-width=320")
        #expect(media.simulcast?.send == [["q"], ["h", "q"]])
        #expect(media.simulcast?.receive == [["x"]])
        #expect(media.candidates.isEmpty)
        #expect(media.transport.setup == .actpass)
    }

    @Test(
        arguments: [
            ("rcvr-rtt=all", .all), ("rcvr-rtt=sender", .sender), ("rcvr-rtt=all:800", .all),
            ("pkt-loss-rle voip-metrics rcvr-rtt=sender:40 stat-summary=loss", .sender),
            ("rcvr-rtt=none", nil), ("rcvr-rtt", nil), ("voip-metrics", nil), ("", nil),
        ] as [(String, ReceiverRoundTrip?)]
    )
    func `reads who answers receivers' reference times`(
        reports: String,
        mode: ReceiverRoundTrip?
    ) throws {
        let text = description("a=rtcp-xr:\(reports)")
        let session = try SessionDescription(text)
        #expect(session.media.first?.receiverRoundTrip == mode)
        let answer = try SessionDescription(session.text)
        #expect(answer.media.first?.receiverRoundTrip == mode)
    }

    @Test(arguments: ["\n", "\r\n"])
    func `lines end with LF or CRLF`(end: String) throws {
        let text = description("a=mid:0").replacing("\r\n", with: end)
        for tail in ["", end, end + end] {
            #expect(try SessionDescription(text + tail).media.first?.mid == "0")
        }
        #expect(try SessionDescription(String(text.dropLast())).media.first?.mid == "0")
    }

    @Test func `a printed description parses to the same`() throws {
        var media = MediaDescription(
            media: "video",
            port: 5004,
            transportProtocol: "UDP/TLS/RTP/SAVPF"
        )
        var format = FormatDescription(payloadType: 96)
        format.name = "VP8"
        format.clockRate = 90_000
        format.feedback = ["nack", "nack pli"]
        media.formats = [format, FormatDescription(payloadType: 97)]
        media.mid = "0"
        media.direction = .recvonly
        media.multiplexesRTCP = true
        media.extensions = [ExtensionAttribute(id: 4, direction: .recvonly, uri: "urn:x")]
        media.streams = StreamAttribute(stream: "s", track: "t")
        media.sources = [SourceAttribute(ssrc: SSRC(rawValue: 7), cname: "c")]
        media.sourceGroups = [
            SourceGroupAttribute(semantics: "FID", ssrcs: [SSRC(rawValue: 7), SSRC(rawValue: 8)])
        ]
        media.rids = [
            RIDAttribute(id: "q", sends: false, payloadTypes: [96], restrictions: "max-fps=5")
        ]
        media.simulcast = SimulcastAttribute(receive: [["q"]])
        media.transport.fragment = "abcd"
        media.transport.password = "0123456789012345678901"
        media.transport.setup = .passive
        media.transport.fingerprints = [
            FingerprintAttribute(hash: "sha-256", digest: Array(0..<32))
        ]
        var session = SessionDescription()
        session.identifier = 1
        session.version = 3
        session.isICELite = true
        session.iceOptions = ["ice2"]
        session.bundles = [BundleGroup(mids: ["0"])]
        session.media = [media]

        var read = try SessionDescription(session.text)
        read.lineCount = 0
        read.bundles[0].line = 0
        read.media[0].line = 0
        #expect(read == session)
        #expect(session.text.hasSuffix("\r\n"))
    }

    struct Bad: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var line: Int
        var cause: String
    }

    static let bad: [Bad] =
        [
            Bad(testDescription: "nothing", text: "", line: 1, cause: "version"),
            Bad(testDescription: "not SDP", text: "{}", line: 1, cause: "letter=value"),
            Bad(testDescription: "version 1", text: "v=1\r\n", line: 1, cause: "version"),
            Bad(
                testDescription: "bare CR",
                text: "v=0\r\no=- 1 2 IN IP4 h\rs=-\r\n",
                line: 2,
                cause: "carriage return"
            ),
            Bad(testDescription: "CR at the end", text: "v=0\r", line: 1, cause: "carriage return"),
            Bad(testDescription: "NUL", text: "v=0\ns=\0\n", line: 2, cause: "NUL"),
            Bad(testDescription: "blank line", text: "v=0\n\ns=-\n", line: 2, cause: "blank"),
            Bad(testDescription: "no letter", text: "v=0\nhello\n", line: 2, cause: "letter=value"),
            Bad(testDescription: "unknown letter", text: "v=0\nx=1\n", line: 2, cause: "line type"),
            Bad(testDescription: "short origin", text: "v=0\no=- 1 2\n", line: 2, cause: "o="),
            Bad(
                testDescription: "long line",
                text: "v=0\ns=" + String(repeating: "x", count: 9_000),
                line: 2,
                cause: "longer than 8192"
            ),
            Bad(
                testDescription: "1 MiB",
                text: String(repeating: "a=x\n", count: 262_144),
                line: 1,
                cause: "longer than 262144"
            ),
            Bad(
                testDescription: "10,000 m-lines",
                text: "v=0\n" + String(repeating: "m=audio 9 RTP/AVP 0\n", count: 10_000),
                line: 102,
                cause: "100 m-lines"
            ),
            Bad(
                testDescription: "port",
                text: "v=0\nm=audio 65536 RTP/AVP 0\n",
                line: 2,
                cause: "m="
            ),
            Bad(
                testDescription: "two ports",
                text: "v=0\nm=audio 9/2 RTP/AVP 0\n",
                line: 2,
                cause: "m="
            ),
            Bad(
                testDescription: "no formats",
                text: "v=0\nm=audio 9 RTP/AVP\n",
                line: 2,
                cause: "m="
            ),
            Bad(
                testDescription: "spaces for formats",
                text: "v=0\nm=audio 9 UDP/BFCP  \n",
                line: 2,
                cause: "m="
            ),
            Bad(
                testDescription: "payload type 128",
                text: "v=0\nm=audio 9 RTP/AVP 128\n",
                line: 2,
                cause: "payload type"
            ),
        ]
        + [
            ("rtpmap of 300", "a=rtpmap:300 VP8/90000", "payload type"),
            ("rtpmap without rate", "a=rtpmap:96 VP8", "rtpmap"),
            ("rate past 32 bits", "a=rtpmap:96 VP8/4294967296", "rtpmap"),
            ("empty mid", "a=mid:", "mid"),
            ("mid with a space", "a=mid:a b", "mid"),
            ("long mid", "a=mid:" + String(repeating: "m", count: 49), "mid"),
            ("extmap id 0", "a=extmap:0 urn:x", "extmap id"),
            ("extmap id 5000", "a=extmap:5000 urn:x", "extmap id"),
            ("extmap direction", "a=extmap:1/up urn:x", "extmap direction"),
            ("extmap without uri", "a=extmap:1", "extmap"),
            ("ssrc of 33 bits", "a=ssrc:4294967296 cname:x", "32 bits"),
            ("ssrc-group of words", "a=ssrc-group:FID one two", "32 bits"),
            ("rid without direction", "a=rid:q", "rid"),
            ("rid of 64 kB", "a=rid:" + String(repeating: "q", count: 7_000) + " send", "rid"),
            ("rid restricted to nothing known", "a=rid:q send pt=x", "payload type"),
            ("simulcast without list", "a=simulcast:send", "simulcast"),
            ("simulcast up", "a=simulcast:up q", "simulcast"),
            ("17 streams", "a=simulcast:send a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q", "streams"),
            ("short ufrag", "a=ice-ufrag:abc", "ice-ufrag"),
            ("ufrag with a space", "a=ice-ufrag:ab cd", "ice-ufrag"),
            ("short pwd", "a=ice-pwd:012345678901234567890", "ice-pwd"),
            ("long pwd", "a=ice-pwd:" + String(repeating: "x", count: 257), "ice-pwd"),
            ("fingerprint without hash", "a=fingerprint:12:34", "fingerprint"),
            ("fingerprint of 2 bytes", "a=fingerprint:sha-256 12:34", "fingerprint"),
            ("fingerprint of letters", "a=fingerprint:md5 GG", "fingerprint"),
            ("setup", "a=setup:maybe", "setup"),
        ].map { name, line, cause in
            Bad(testDescription: name, text: description(line), line: 7, cause: cause)
        }
        + [
            ("two codecs", "a=rtpmap:96 VP8/90000", "a=rtpmap:96 VP9/90000", "two codecs"),
            ("two mids", "a=mid:0", "a=mid:1", "second mid"),
            ("two meanings", "a=extmap:1 urn:x", "a=extmap:1 urn:y", "two meanings"),
            ("rid twice", "a=rid:q send", "a=rid:q recv", "twice"),
        ].map { name, first, second, cause in
            Bad(testDescription: name, text: description(first, second), line: 8, cause: cause)
        }

    @Test(arguments: bad)
    func `errors have line and cause`(_ row: Bad) throws {
        let error = try #require(failure(row.text))
        #expect(error.line == row.line)
        #expect(error.cause.contains(row.cause), "\(error.cause)")
    }

    static let counted: [(String, Int)] = [
        ("a=rid:r# send", SDPLimits.rids), ("a=extmap:# urn:x", SDPLimits.extensions),
        ("a=ssrc:# cname:x", SDPLimits.sources), ("a=rtcp-fb:96 k#", SDPLimits.feedbackKinds),
        ("a=ssrc-group:FID #", SDPLimits.sourceGroups),
        (
            "a=fingerprint:sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":"),
            SDPLimits.fingerprints
        ),
    ]

    @Test(arguments: counted)
    func `takes as many as the limit and no more`(pattern: String, limit: Int) {
        func text(_ count: Int) -> String {
            description()
                + (1...count).map { pattern.replacing("#", with: "\($0)") + "\r\n" }.joined()
        }
        #expect(failure(text(limit)) == nil)
        #expect(failure(text(limit + 1))?.line == 6 + limit + 1)
    }

    @Test func `bytes that are not UTF-8 are refused with their line`() {
        var bytes = Array(description("a=mid:0", "a=x:\u{e9}").utf8)
        #expect(throws: Never.self) { try SessionDescription(utf8: bytes) }
        bytes[bytes.count - 3] = 0xff
        #expect(throws: SDPError(line: 8, cause: "not UTF-8")) {
            try SessionDescription(utf8: bytes)
        }
    }

    /// Quadratic in the size of the text if any step looked back over all lines.
    @Test(arguments: ["a=x\n", "a=ssrc:1 cname:x\n", "a=rtcp-fb:96 nack\n", "a=fmtp:96 a=1;b=2\n"])
    func `the largest text is read in one pass`(line: String) throws {
        let head = description()
        let count = (SDPLimits.bytes - head.utf8.count) / line.utf8.count
        let text = head + String(repeating: line, count: count)
        let clock = ContinuousClock()
        let time = try clock.measure { _ = try SessionDescription(text) }
        #expect(time < .seconds(5))
    }

    @Test func `numbers that overflow are refused`() {
        let rows: [(String, UInt16?)] = [
            ("0", 0), ("65535", 65_535), ("65536", nil), ("", nil), ("+1", nil), ("-0", nil),
            ("99999999999999999999999", nil), ("\u{661}", nil),
        ]
        for (text, value) in rows {
            let port = try? SessionDescription("v=0\nm=audio \(text) RTP/AVP 0\n").media[0].port
            #expect(port == value, "\(text)")
        }
    }
}
