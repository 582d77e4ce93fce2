import RTP
import Rooms
import Testing
import WorkerInterface

struct NegotiationTests {
    @Test func `a publisher's offer becomes publications`() throws {
        var bench = NegotiationBench()
        let offer = TestOffer([
            .init(mid: "0", extra: ["ssrc:11 cname:x", "rtcp-rsize"]),
            .init(
                mid: "1",
                kind: "video",
                extra: ["ssrc-group:FID 21 22", "ssrc:21 cname:x", "ssrc:22 cname:x", "rtcp-rsize"]
            ),
        ])
        let answer = try bench.answer(offer)
        #expect(AnswerInvariants(offer: offer.text, answer: answer.sdp).violations == [])
        #expect(answer.media.map(\.direction) == [.sendonly, .sendonly])
        #expect(answer.media.map(\.kind) == [.audio, .video])
        let configuration = answer.configuration
        #expect(configuration.dtlsRole == .server)
        #expect(configuration.reducedSizeRTCP)
        #expect(configuration.ice.remoteFragment == "frag")
        #expect(configuration.slots.isEmpty)
        #expect(configuration.publications.map(\.id) == answer.media.map(\.publication))

        let audio = configuration.publications[0]
        #expect(audio.formats.map(\.format.codec) == [.opus, .red])
        #expect(audio.formats[0].feedback == .transportWide)
        #expect(audio.encodings == [EncodingConfiguration(ssrc: SSRC(rawValue: 11))])
        #expect(audio.extensions[.audioLevel] == 1)

        let video = configuration.publications[1]
        #expect(video.formats.map(\.format.codec) == [.vp8, .vp9, .h264, .av1])
        #expect(video.formats.map(\.rtxPayloadType) == [97, 99, nil, nil])
        #expect(
            video.formats[0].feedback
                == [.remb, .transportWide, .fullIntraRequest, .nack, .pictureLoss]
        )
        #expect(
            video.encodings
                == [
                    EncodingConfiguration(
                        ssrc: SSRC(rawValue: 21),
                        rtxSSRC: SSRC(rawValue: 22)
                    )
                ]
        )
        #expect(video.extensions[.dependencyDescriptor] == 8)
        #expect(answer.sdp.contains("a=fmtp:111 minptime=10;useinbandfec=1\r\n"))
        #expect(answer.sdp.contains("a=fmtp:63 111/111\r\n"))
        #expect(answer.sdp.contains("a=extmap:8/recvonly https://aomediacodec"))
        #expect(answer.sdp.contains("a=candidate:2 1 udp 2130706175 2001:db8::1 5004 typ host\r\n"))
    }

    /// A publisher's delay would stay with a viewer's m-line for all who are shown on it later.
    @Test(arguments: ["sendonly", "recvonly"])
    func `a playout delay is not agreed to`(direction: String) throws {
        var bench = NegotiationBench()
        let extra = ["extmap:12 \(ExtensionKind.playoutDelay.uri)"]
        let offer = TestOffer([
            .init(mid: "v0", kind: "video", direction: direction, extra: extra)
        ])
        let answer = try bench.answer(offer)
        #expect(!answer.sdp.contains("playout-delay"))
        let ids =
            answer.configuration.publications.map { $0.extensions[.playoutDelay] }
            + answer.configuration.slots.map { $0.extensions[.playoutDelay] }
        #expect(ids == [0])
    }

    @Test func `receive lines become slots that keep their SSRCs`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([
            .init(mid: "a0", direction: "recvonly"),
            .init(mid: "v0", kind: "video", direction: "recvonly"),
        ])
        let first = try bench.answer(offer)
        #expect(AnswerInvariants(offer: offer.text, answer: first.sdp).violations == [])
        #expect(first.media.map(\.direction) == [.recvonly, .recvonly])
        let slots = first.configuration.slots
        #expect(slots.map(\.id) == first.media.map(\.slot))
        #expect(slots[0].rtxSSRC == nil)
        let rtx = try #require(slots[1].rtxSSRC)
        #expect(Set([slots[0].ssrc, slots[1].ssrc, rtx]).count == 3)
        #expect(
            first.sdp.contains("a=ssrc-group:FID \(slots[1].ssrc.rawValue) \(rtx.rawValue)\r\n")
        )
        // Both share one stream, so that the client synchronizes audio and video.
        #expect(first.sdp.contains("a=msid:slots-0 slot-a0\r\n"))
        #expect(first.sdp.contains("a=msid:slots-0 slot-v0\r\n"))
        #expect(slots[1].extensions[.rid] == 0)
        // This extension the client only sends.
        #expect(slots[1].extensions[.dependencyDescriptor] == 0)

        offer.lines.append(.init(mid: "v1", kind: "video", direction: "recvonly"))
        let second = try bench.answer(offer)
        #expect(Array(second.configuration.slots.prefix(2)) == slots)
        #expect(second.configuration.ice == first.configuration.ice)
        #expect(!second.isICERestart)
        #expect(second.sdp.split(separator: " ")[2] == "2")
    }

    @Test func `who answers receivers' times is agreed as offered, for each m-line`() throws {
        var bench = NegotiationBench()
        let offer = TestOffer([
            .init(mid: "0", direction: "recvonly", extra: ["rtcp-xr:rcvr-rtt=all:100"]),
            .init(mid: "1", kind: "video", direction: "recvonly"),
        ])
        let answer = try bench.answer(offer)
        let lines = try SessionDescription(answer.sdp).media
        #expect(lines.map(\.receiverRoundTrip) == [.all, nil])
        #expect(answer.sdp.contains("a=rtcp-xr:rcvr-rtt=all\r\n"))
    }

    /// Receivers that report arrivals by number do not need send times, which cost four bytes a
    /// packet.
    @Test(arguments: [(feedback: "transport-cc", id: 0), (feedback: "goog-remb", id: 2)])
    func `only receivers without transport feedback get send times`(
        row: (feedback: String, id: UInt8)
    ) throws {
        var bench = NegotiationBench()
        let offer = TestOffer([
            .init(
                mid: "v0",
                kind: "video",
                direction: "recvonly",
                extra: ["extmap:2 \(ExtensionKind.absoluteSendTime.uri)"],
                codecs: ["96 VP8/90000|\(row.feedback),nack pli|"]
            )
        ])
        let answer = try bench.answer(offer)
        #expect(AnswerInvariants(offer: offer.text, answer: answer.sdp).violations == [])
        #expect(answer.sdp.contains("a=extmap:2 "))
        #expect(answer.configuration.slots[0].extensions[.absoluteSendTime] == row.id)
    }

    @Test func `simulcast is taken by RID`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([.init(mid: "0", kind: "video", rids: ["q", "h", "f"])])
        var answer = try bench.answer(offer)
        #expect(AnswerInvariants(offer: offer.text, answer: answer.sdp).violations == [])
        #expect(answer.sdp.contains("a=rid:q recv\r\na=rid:h recv\r\na=rid:f recv\r\n"))
        #expect(answer.sdp.contains("a=simulcast:recv q;h;f\r\n"))
        #expect(answer.configuration.publications[0].encodings.map(\.rid) == ["q", "h", "f"])

        offer.lines[0].rids = (1...16).map { "r\($0)" }
        answer = try bench.answer(offer)
        #expect(answer.sdp.contains("a=simulcast:recv r1;r2;r3;r4\r\n"))

        offer.lines[0].rids = []
        offer.lines[0].extra = [
            "rid:a send pt=96,118;max-width=320", "rid:b send", "rid:c send pt=118",
            "simulcast:send ~a,x;missing;c;b;a",
        ]
        answer = try bench.answer(offer)
        #expect(answer.sdp.contains("a=rid:a recv pt=96;max-width=320\r\n"))
        #expect(answer.sdp.contains("a=simulcast:recv a;b\r\n"))
    }

    @Test func `what is refused is inactive and has no publication`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([
            .init(mid: "0"), .init(mid: "1", kind: "video", direction: "sendrecv"),
        ])
        var answer = try bench.answer(offer, refusing: ["0": "role", "1": "mode"])
        #expect(AnswerInvariants(offer: offer.text, answer: answer.sdp).violations == [])
        #expect(answer.media.map(\.refused) == ["role", "mode"])
        #expect(answer.media.map(\.direction) == [.inactive, .recvonly])
        #expect(answer.configuration.publications.isEmpty)
        #expect(answer.configuration.slots.count == 1)

        answer = try bench.answer(offer)
        #expect(answer.media.map(\.refused) == [nil, nil])
        let publications = answer.configuration.publications.map(\.id)
        #expect(publications.count == 2)

        offer.lines[0].direction = "inactive"
        answer = try bench.answer(offer, refusing: ["1": "role"])
        #expect(answer.endedPublications == publications)
        #expect(answer.endedSlots.isEmpty)
    }

    @Test func `R-1 the answer limits the audio that is sent to us (RFC 7587 6.1)`() throws {
        let rows: [(limit: Int, parameters: String, expected: String)] = [
            (
                32_000, "minptime=10;useinbandfec=1",
                "minptime=10;useinbandfec=1;maxaveragebitrate=32000"
            ),
            (
                32_000, "maxaveragebitrate=64000;minptime=10",
                "minptime=10;maxaveragebitrate=32000"
            ),
            (32_000, "maxaveragebitrate=16000", "maxaveragebitrate=16000"),
            (1_000, "minptime=10", "minptime=10;maxaveragebitrate=6000"),
            (510_000, "minptime=10", "minptime=10"),
        ]
        for row in rows {
            var bench = NegotiationBench()
            var line = TestOffer.Line(mid: "0")
            line.codecs = ["111 opus/48000/2||\(row.parameters)"]
            let answer = try bench.answer(TestOffer([line]), limiting: ["0": row.limit])
            #expect(answer.sdp.contains("a=fmtp:111 \(row.expected)\r\n"), "\(row)")
            // Nothing is limited where the client only listens.
            line.direction = "recvonly"
            var other = NegotiationBench()
            let listener = try other.answer(TestOffer([line]), limiting: ["0": row.limit])
            #expect(listener.sdp.contains("a=fmtp:111 \(row.parameters)\r\n"), "\(row)")
        }
    }

    @Test func `R-1 an answer leaves simulcast out where it is not allowed`() throws {
        var line = TestOffer.Line(mid: "1", kind: "video")
        line.rids = ["q", "h", "f"]
        for (mid, rids) in [("1", 0), ("2", 3)] {
            var bench = NegotiationBench()
            let offer = TestOffer([line])
            let answer = try bench.negotiation.answer(
                offer.text,
                identifiers: &bench.identifiers,
                random: &bench.random,
                policy: { _ in nil },
                simulcast: { $0.mid != mid }
            )
            #expect(AnswerInvariants(offer: offer.text, answer: answer.sdp).violations == [])
            #expect(answer.sdp.contains("a=simulcast") == (rids > 0))
            #expect(answer.sdp.matches(of: /a=rid:/).count == rids)
            let encodings = answer.configuration.publications[0].encodings
            #expect(encodings.compactMap(\.rid).count == rids)
            #expect(encodings.count == max(1, rids))
        }
    }

    @Test func `what is not media on this transport is rejected`() throws {
        var bench = NegotiationBench()
        var alone = TestOffer.Line(mid: "3", isBundled: false)
        alone.codecs = ["111 opus/48000/2||"]
        let offer = TestOffer([
            .init(mid: "0", kind: "application"),
            .init(mid: "1", kind: "video", port: 0, extra: ["bundle-only"]),
            .init(mid: "2", codecs: ["0 PCMU/8000||"]), alone,
            .init(mid: "4", kind: "video", port: 0),
        ])
        let answer = try bench.answer(offer)
        #expect(AnswerInvariants(offer: offer.text, answer: answer.sdp).violations == [])
        #expect(answer.media.map(\.isRejected) == [true, false, true, true, true])
        #expect(answer.media.map(\.lacksCodec) == [false, false, true, false, false])
        #expect(answer.sdp.contains("m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n"))
        #expect(answer.sdp.contains("a=group:BUNDLE 1\r\n"))

        var single = offer
        single.lines = [alone, .init(mid: "5", isBundled: false)]
        var other = NegotiationBench()
        let unbundled = try other.answer(single)
        #expect(unbundled.media.map(\.isRejected) == [false, true])
        #expect(!unbundled.sdp.contains("BUNDLE"))
    }

    @Test func `without rtcp-mux an m-line is rejected, without mid the offer`() throws {
        var bench = NegotiationBench()
        let offer = TestOffer([.init(mid: "0"), .init(mid: "1", kind: "video")]).text
        let unmixed = offer.replacing("a=rtcp-mux\n", with: "", maxReplacements: 1)
        #expect(try bench.answer(unmixed).media.map(\.isRejected) == [true, false])
        var lone = TestOffer([.init(mid: "0", isBundled: false)])
        #expect(bench.failure(lone.text.replacing("a=mid:0\n", with: "")) != nil)
        lone.lines[0].extra = ["rtcp-mux-only"]
        var other = NegotiationBench()
        #expect(try other.answer(lone).media.map(\.isRejected) == [false])
    }

    @Test func `an m-line is recycled only after its rejection`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([.init(mid: "0"), .init(mid: "1", kind: "video")])
        let first = try bench.answer(offer)
        offer.lines[1].mid = "2"
        #expect(bench.failure(offer.text)?.cause == "m-line 2 has changed its mid")
        offer.lines[1] = .init(mid: "1", kind: "video", port: 0)
        let stopped = try bench.answer(offer)
        #expect(stopped.endedPublications == [first.media[1].publication])
        offer.lines[1] = .init(mid: "2", direction: "recvonly")
        let recycled = try bench.answer(offer)
        #expect(recycled.media[1].slot != nil)
        #expect(recycled.media[0].publication == first.media[0].publication)
        offer.lines.removeLast()
        #expect(bench.failure(offer.text)?.cause.contains("fewer") == true)
    }

    @Test func `ICE restarts with new credentials on both sides`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([.init(mid: "0")])
        let first = try bench.answer(offer)
        offer.fragment = "next"
        #expect(bench.failure(offer.text)?.cause.contains("only one") == true)
        offer.password = "9876543210987654321098"
        let second = try bench.answer(offer)
        #expect(second.isICERestart && !first.isICERestart)
        #expect(second.configuration.ice.remoteFragment == "next")
        #expect(second.configuration.ice.localFragment != first.configuration.ice.localFragment)
        #expect(second.configuration.ice.localPassword != first.configuration.ice.localPassword)
        #expect(second.configuration.publications == first.configuration.publications)
        #expect(try !bench.answer(offer).isICERestart)
    }

    static let roles: [(String?, String, DTLSRole)] = [
        ("actpass", "passive", .server), ("active", "passive", .server),
        ("passive", "active", .client), (nil, "passive", .server),
    ]

    @Test(arguments: roles)
    func `the DTLS role answers the offer's and stays`(
        setup: String?,
        answered: String,
        role: DTLSRole
    ) throws {
        var bench = NegotiationBench()
        var offer = TestOffer([.init(mid: "0")])
        offer.setup = setup
        let answer = try bench.answer(offer)
        #expect(answer.configuration.dtlsRole == role)
        #expect(answer.sdp.contains("a=setup:\(answered)\r\n"))
        offer.setup = "actpass"
        #expect(try bench.answer(offer).configuration.dtlsRole == role)
        offer.setup = role == .server ? "passive" : "active"
        #expect(bench.failure(offer.text)?.cause.contains("DTLS role") == true)
    }

    @Test func `fingerprints are taken by strength and never change`() throws {
        var bench = NegotiationBench()
        var offer = TestOffer([.init(mid: "0")])
        let strong = offer.fingerprints[0]
        offer.fingerprints = ["md5 " + Array(repeating: "00", count: 16).joined(separator: ":")]
        #expect(bench.failure(offer.text)?.cause.contains("no fingerprint") == true)
        offer.fingerprints = []
        #expect(bench.failure(offer.text)?.cause.contains("no fingerprint") == true)
        offer.session = ["fingerprint:\(strong.lowercased())", "setup:actpass"]
        let sha512 = "SHA-512 " + Array(repeating: "Cd", count: 64).joined(separator: ":")
        offer.session.append("fingerprint:\(sha512)")
        let answer = try bench.answer(offer)
        #expect(answer.configuration.fingerprints.map(\.algorithm) == [.sha256, .sha512])
        #expect(answer.configuration.fingerprints[0].digest == Array(repeating: 0xab, count: 32))
        offer.fingerprints = [strong]
        #expect(bench.failure(offer.text)?.cause.contains("fingerprint has changed") == true)
    }

    @Test func `an offer that exceeds the identifiers takes none`() throws {
        var bench = NegotiationBench(publications: 1, slots: 1)
        var offer = TestOffer([
            .init(mid: "0", direction: "sendrecv"), .init(mid: "1", direction: "sendrecv"),
        ])
        let error = bench.failure(offer.text)
        #expect(error?.reason == .exhausted)
        #expect(bench.identifiers.publications.used == 0)
        #expect(bench.identifiers.slots.used == 0)
        offer.lines.removeLast()
        let answer = try bench.answer(offer)
        #expect(bench.identifiers.slots.used == 1)
        #expect(answer.sdp.split(separator: " ")[2] == "1")
    }
}
