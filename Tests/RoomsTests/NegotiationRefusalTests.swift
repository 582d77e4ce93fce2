import RTP
import Rooms
import Testing
import WorkerInterface

/// Offers that break a rule: rejected with a line number, or accepted without the invalid parts.
struct NegotiationRefusalTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Extra lines of the video m-line.
        var video: [String] = []
        var session: [String] = []
        /// Extra lines of a second video m-line; `nil` for none.
        var second: [String]?
        /// Cause of the rejection; `nil` where the offer is answered.
        var cause: String?
        /// Payload types of the answer; `nil` where they do not matter.
        var formats: [UInt8]?
    }

    static let refused = [
        Row(testDescription: "PT 128", video: ["rtpmap:128 VP8/90000"], cause: "payload type"),
        Row(
            testDescription: "two codecs on a PT",
            video: ["rtpmap:96 VP9/90000"],
            cause: "payload type 96 has two codecs"
        ),
        Row(
            testDescription: "two codecs on a PT of bundled lines",
            second: ["96 VP9/90000||"],
            cause: "payload type 96 has another meaning"
        ),
        Row(
            testDescription: "codec and rtx on a PT of bundled lines",
            second: ["97 VP8/90000||"],
            cause: "payload type 97 has another meaning"
        ),
        Row(
            testDescription: "17 rids",
            video: (1...17).map { "rid:r\($0) send" },
            cause: "more than 16 rids"
        ),
        Row(
            testDescription: "rid of 300 bytes",
            video: ["rid:" + String(repeating: "q", count: 300) + " send"],
            cause: "rid"
        ),
        Row(
            testDescription: "ssrc of words",
            video: ["ssrc:one cname:x"],
            cause: "32 bits"
        ),
        Row(
            testDescription: "extension id with two meanings",
            video: ["extmap:4 \(ExtensionKind.videoOrientation.uri)"],
            cause: "two meanings"
        ),
        Row(testDescription: "mid twice in BUNDLE", session: ["group:BUNDLE 0"], cause: "twice"),
        Row(
            testDescription: "unknown mid in BUNDLE",
            session: ["group:BUNDLE z"],
            cause: "without"
        ),
        Row(testDescription: "both ICE-lite", session: ["ice-lite"], cause: "ICE-lite"),
    ]

    static let tolerated = [
        Row(
            testDescription: "rtx without apt",
            video: ["rtpmap:120 rtx/90000"],
            formats: [96, 97, 98, 99, 102, 45]
        ),
        Row(
            testDescription: "apt loop",
            video: [
                "rtpmap:120 rtx/90000", "fmtp:120 apt=121", "rtpmap:121 rtx/90000",
                "fmtp:121 apt=120",
            ],
            formats: [96, 97, 98, 99, 102, 45]
        ),
        Row(
            testDescription: "rtx of itself",
            video: ["rtpmap:120 rtx/90000", "fmtp:120 apt=120"],
            formats: [96, 97, 98, 99, 102, 45]
        ),
        Row(
            testDescription: "second rtx of a codec",
            video: ["rtpmap:120 rtx/90000", "fmtp:120 apt=96"],
            formats: [96, 97, 98, 99, 102, 45]
        ),
        Row(testDescription: "ssrc-group of one", video: ["ssrc-group:FID 1", "ssrc:1 cname:x"]),
        Row(testDescription: "ssrc-group of no meaning", video: ["ssrc-group:XYZ 1 2 3 4 5"]),
        Row(testDescription: "fmtp of a PT that is not there", video: ["fmtp:77 x=y"]),
        Row(testDescription: "wildcard feedback", video: ["rtcp-fb:* nack pli"]),
        Row(testDescription: "a PT that RTCP has", video: ["rtpmap:72 VP8/90000"]),
        Row(
            testDescription: "hostile candidates",
            video: [
                "candidate:1 1 udp 1 224.0.0.1 0 typ host", "candidate:", "candidate:x",
                "end-of-candidates",
            ]
        ),
        Row(
            testDescription: "an extension id that needs two bytes",
            video: ["extmap:200 \(ExtensionKind.videoOrientation.uri)"]
        ),
    ]

    private static func offer(_ row: Row) -> TestOffer {
        var first = TestOffer.Line(mid: "0", kind: "video", extra: row.video)
        first.codecs = TestOffer.video + ["120 x/1||", "121 x/1||"]
        // Rows that map payload types 120 and 121 must find them unmapped.
        var offer = TestOffer([first])
        if let second = row.second {
            var line = TestOffer.Line(mid: "1", kind: "video")
            line.codecs = second
            offer.lines.append(line)
        }
        offer.session = row.session
        return offer
    }

    private static func text(_ row: Row) -> String {
        offer(row).text.replacing("a=rtpmap:120 x/1\n", with: "")
            .replacing("a=rtpmap:121 x/1\n", with: "")
    }

    @Test(arguments: refused)
    func `is refused`(_ row: Row) throws {
        var bench = NegotiationBench()
        let text = Self.text(row)
        let failure = bench.failure(text)
        let error = try #require(failure)
        #expect(error.cause.contains(row.cause ?? ""), "\(error.cause)")
        #expect(error.reason == .malformed)
        #expect((1...text.split(separator: "\n").count).contains(error.line))
        #expect(bench.identifiers.publications.used == 0)
    }

    @Test(arguments: tolerated)
    func `is answered without it`(_ row: Row) throws {
        var bench = NegotiationBench()
        let text = Self.text(row)
        let answer = try bench.answer(text)
        #expect(AnswerInvariants(offer: text, answer: answer.sdp).violations == [])
        if let formats = row.formats {
            let description = try SessionDescription(answer.sdp)
            #expect(description.media[0].formats.map(\.payloadType) == formats)
        }
        for address in ["224.0.0.1", "200", "127.0.0.1 9"] {
            #expect(!answer.sdp.contains(" \(address) "))
        }
    }

    @Test func `payload types and extension ids stay what they were`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([.init(mid: "0", kind: "video")])
        _ = try bench.answer(offer)
        offer.lines[0].codecs = ["96 VP9/90000||"]
        #expect(bench.failure(offer.text)?.cause == "payload type 96 has changed its meaning")
        offer.lines[0].codecs = []
        let moved = offer.text.replacing("extmap:4 ", with: "extmap:5 ")
        #expect(bench.failure(moved)?.cause == "extmap id 4 has moved")
        #expect(throws: Never.self) { try bench.answer(offer) }
    }

    struct Profile: CustomTestStringConvertible, Sendable {
        var testDescription: String { parameters }
        var name: String
        var parameters: String
        var format: MediaFormat?
    }

    static let profiles: [Profile] =
        [
            ("42e01f", 0), ("42c016", 0), ("4d801f", 0), ("42001f", 1), ("4d001f", 2),
            ("640c1f", 3), ("64001f", 4),
        ].map { level, rank in
            Profile(
                name: "H264",
                parameters: "profile-level-id=\(level);packetization-mode=1",
                format: MediaFormat(codec: .h264, profile: rank)
            )
        }
        + [
            Profile(
                name: "H264",
                parameters: "packetization-mode=1",
                format: MediaFormat(codec: .h264)
            ),
            Profile(name: "H264", parameters: "profile-level-id=42e01f", format: nil),
            Profile(
                name: "H264",
                parameters: "packetization-mode=1;profile-level-id=f4001f",
                format: nil
            ),
            Profile(
                name: "h264",
                parameters: "packetization-mode=1;profile-level-id=zz001f",
                format: nil
            ),
            Profile(name: "VP9", parameters: "max-fs=1", format: MediaFormat(codec: .vp9)),
            Profile(
                name: "vp9",
                parameters: "x=1; Profile-ID=2",
                format: MediaFormat(codec: .vp9, profile: 2)
            ),
            Profile(name: "VP9", parameters: "profile-id=1", format: nil),
            Profile(name: "AV1", parameters: "", format: MediaFormat(codec: .av1)),
            Profile(name: "AV1", parameters: "profile=1", format: nil),
            Profile(name: "VP8", parameters: "max-fr=60", format: MediaFormat(codec: .vp8)),
            Profile(name: "opus", parameters: "", format: nil),
        ]

    @Test(arguments: profiles)
    func `a codec is taken by its profile`(_ row: Profile) throws {
        var bench = NegotiationBench()
        var line = TestOffer.Line(mid: "0", kind: "video")
        line.codecs = ["100 \(row.name)/90000||\(row.parameters)"]
        let answer = try bench.answer(TestOffer([line, .init(mid: "1")]))
        #expect(answer.media[0].isRejected == (row.format == nil))
        let video = answer.configuration.publications.first { $0.kind == .video }
        #expect(video?.formats.first?.format == row.format)
    }
}
