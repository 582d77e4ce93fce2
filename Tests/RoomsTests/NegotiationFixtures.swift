import RTP
import Rooms
import WorkerInterface

/// A client's offer, line by line, in the shapes that browsers and other clients use.
struct TestOffer {
    struct Line {
        var mid: String
        var kind = "audio"
        var direction = "sendonly"
        var port = 9
        var isBundled = true
        var extra: [String] = []
        var rids: [String] = []
        var codecs: [String] = []
    }

    var lines: [Line]
    var fragment = "frag"
    var password = "0123456789012345678901"
    var setup: String? = "actpass"
    var fingerprints = ["sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":")]
    var session: [String] = []

    static let opus = [
        "111 opus/48000/2|transport-cc|minptime=10;useinbandfec=1;sprop-stereo=1",
        "63 red/48000/2||111/111", "0 PCMU/8000||",
    ]
    static let video = [
        "96 VP8/90000|goog-remb,transport-cc,ccm fir,nack,nack pli,x-unknown|",
        "97 rtx/90000||apt=96", "98 VP9/90000|nack,nack pli|profile-id=0",
        "99 rtx/90000||apt=98",
        "102 H264/90000|nack,nack pli|"
            + "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
        "104 H264/90000|nack|packetization-mode=0;profile-level-id=42e01f",
        "45 AV1/90000|nack|level-idx=5;profile=0;tier=0", "118 red/90000||",
        "119 rtx/90000||apt=118",
    ]
    static let extensions = [
        "audio": [
            "1 \(ExtensionKind.audioLevel.uri)", "3 \(ExtensionKind.transportSequenceNumber.uri)",
            "4 \(ExtensionKind.mid.uri)",
        ],
        "video": [
            "14 urn:ietf:params:rtp-hdrext:toffset",
            "3 \(ExtensionKind.transportSequenceNumber.uri)", "4 \(ExtensionKind.mid.uri)",
            "10 \(ExtensionKind.rid.uri)", "11 \(ExtensionKind.repairedRID.uri)",
            "8/sendonly \(ExtensionKind.dependencyDescriptor.uri)",
        ],
    ]

    init(_ lines: [Line]) { self.lines = lines }

    /// The offer with LF line ends, so that a test can count the lines.
    var text: String {
        var out = ["v=0", "o=- 4611731400430051336 2 IN IP4 127.0.0.1", "s=-", "t=0 0"]
        let bundled = lines.filter {
            $0.isBundled && ($0.port != 0 || $0.extra.contains("bundle-only"))
        }
        if !bundled.isEmpty {
            out.append("a=group:BUNDLE " + bundled.map(\.mid).joined(separator: " "))
        }
        out += session.map { "a=\($0)" }
        for line in lines { write(line, to: &out) }
        return out.map { $0 + "\n" }.joined()
    }

    private func write(_ line: Line, to out: inout [String]) {
        guard line.kind != "application" else {
            out.append("m=application \(line.port) UDP/DTLS/SCTP webrtc-datachannel")
            out += ["c=IN IP4 0.0.0.0", "a=mid:\(line.mid)", "a=sctp-port:5000"]
            writeTransport(to: &out)
            return
        }
        let defaults = line.kind == "audio" ? Self.opus : Self.video
        let codecs = (line.codecs.isEmpty ? defaults : line.codecs).map {
            $0.split(separator: " ", maxSplits: 1)
        }
        let list = codecs.map { String($0[0]) }.joined(separator: " ")
        out.append("m=\(line.kind) \(line.port) UDP/TLS/RTP/SAVPF \(list)")
        out += ["c=IN IP4 0.0.0.0", "a=mid:\(line.mid)", "a=\(line.direction)", "a=rtcp-mux"]
        writeTransport(to: &out)
        for codec in codecs {
            let parts = codec[1].split(separator: "|", omittingEmptySubsequences: false)
            out.append("a=rtpmap:\(codec[0]) \(parts[0])")
            for feedback in parts[1].split(separator: ",") {
                out.append("a=rtcp-fb:\(codec[0]) \(feedback)")
            }
            if !parts[2].isEmpty { out.append("a=fmtp:\(codec[0]) \(parts[2])") }
        }
        out += (Self.extensions[line.kind] ?? []).map { "a=extmap:\($0)" }
        out += line.rids.map { "a=rid:\($0) send" }
        if !line.rids.isEmpty { out.append("a=simulcast:send " + line.rids.joined(separator: ";")) }
        out += line.extra.map { "a=\($0)" }
    }

    private func writeTransport(to out: inout [String]) {
        out += ["a=ice-ufrag:\(fragment)", "a=ice-pwd:\(password)"]
        out += fingerprints.map { "a=fingerprint:\($0)" }
        if let setup { out.append("a=setup:\(setup)") }
    }
}

/// A seeded generator whose sequence never changes (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}

/// One transport's negotiation with its identifiers.
struct NegotiationBench {
    var negotiation: Negotiation
    var identifiers: WorkerIdentifiers
    var random: SeededRandom

    init(seed: UInt64 = 1, publications: Int = 1_000, slots: Int = 1_000) {
        negotiation = Negotiation(
            local: LocalParameters(
                candidates: [
                    Candidate(address: "192.0.2.1", port: 5004),
                    Candidate(address: "2001:db8::1", port: 5004),
                ],
                fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32)),
                cname: "sfud"
            )
        )
        identifiers = WorkerIdentifiers(transports: 1, publications: publications, slots: slots)
        random = SeededRandom(seed: seed)
    }

    mutating func answer(
        _ offer: String,
        refusing: [String: String] = [:]
    ) throws(SDPError) -> Answer {
        try negotiation.answer(offer, identifiers: &identifiers, random: &random) {
            refusing[$0.mid]
        }
    }

    mutating func answer(
        _ offer: TestOffer,
        refusing: [String: String] = [:]
    ) throws(SDPError) -> Answer {
        try answer(offer.text, refusing: refusing)
    }

    /// Answers with limits on the audio of some m-lines, in bits a second.
    mutating func answer(
        _ offer: TestOffer,
        limiting bitrates: [String: Int]
    ) throws(SDPError) -> Answer {
        try negotiation.answer(
            offer.text,
            identifiers: &identifiers,
            random: &random,
            policy: { _ in nil },
            audioBitrate: { bitrates[$0.mid] }
        )
    }

    mutating func failure(_ offer: String) -> SDPError? {
        do {
            _ = try answer(offer)
            return nil
        } catch { return error }
    }
}
