import RTP
import Testing
import WorkerInterface

@testable import SFU

/// No packet index carries two packets, whatever happens.
///
/// Viewers get one continuous stream unless packets are lost on the way to sfud.
struct IndexTests {
    /// Lossy runs, and runs in which the publishers' network is perfect.
    static let runs = (0..<UInt64(Noise.count(80, short: 2))).flatMap {
        [($0 + 1, true), ($0 + 1, false)]
    }

    struct Run: CustomTestStringConvertible, Sendable {
        var seed: UInt64
        var profile: SRTPProfile
        var engine: SRTPEngine

        var testDescription: String { "\(profile.name) by \(engine.rawValue), seed \(seed)" }
    }

    /// A seed of each profile and engine; forty of each with `SFUD_NOISE=full`.
    static let disruptiveRuns = (0..<UInt64(Noise.count(40, short: 1))).flatMap { seed in
        [SRTPProfile.aes128CmSha1_80, .aeadAes128Gcm].flatMap { profile in
            SRTPEngine.available.map { Run(seed: seed + 1, profile: profile, engine: $0) }
        }
    }

    /// Decrypts and compares all that is sent through layer switches, RTX and its retransmissions,
    /// wraps, restarts, other slots and sources, mute, ICE restarts, and RTCP.
    @Test(arguments: disruptiveRuns)
    func `no key and index carries two plaintexts`(_ run: Run) throws {
        var story = try IndexRandomWalk(
            seed: run.seed,
            isLossy: true,
            profile: run.profile,
            engine: run.engine
        )
        story.prepareDisruptiveRun()
        for _ in 0..<500 { story.disruptiveStep() }
        let ledger = story.ledger
        #expect(ledger.faults.isEmpty)
        #expect(ledger.undecryptable == 0)
        #expect(ledger.packets > 2_000)
        #expect(ledger.reports > 20)
        #expect(ledger.repeats > 20, "the viewer without RTX got too little twice")
        let isLevelled = story.call.peers[2].received.contains { $0[0] & 0x20 != 0 }
        #expect(isLevelled, "no packet was padded")
        #expect(ledger.wrapped.contains { $0 & 1 == 0 }, "no media's number wrapped")
        #expect(ledger.wrapped.contains { $0 & 1 == 1 }, "no RTX number wrapped")
    }

    @Test(arguments: runs)
    func `no packet index carries two packets`(seed: UInt64, isLossy: Bool) throws {
        var story = try IndexRandomWalk(seed: seed, isLossy: isLossy)
        for _ in 0..<600 { story.step() }
        let ledger = story.ledger
        #expect(ledger.faults.isEmpty)
        #expect(ledger.undecryptable == 0)
        #expect(ledger.packets > 200)
        let undecryptable = (2..<4).map { story.call.peers[$0].undecryptable }
        // Retransmissions without RTX are bit-identical, and SRTP accepts each once.
        #expect(undecryptable.reduce(0, +) == ledger.repeats)
        let isBalanced = story.call.statistics().isBalanced
        #expect(isBalanced)
        let destinationsAgree = story.call.destinationsAgree
        #expect(destinationsAgree)
        guard !isLossy else { return }
        try expectContinuity(story.call.peers[2].received, ssrc: 0xa100)
        try expectContinuity(story.call.peers[3].received, ssrc: 0xa300)
    }

    private func expectContinuity(_ packets: [[UInt8]], ssrc: UInt32) throws {
        let media = packets.filter { $0.ssrc == ssrc }
        #expect(media.map { $0.u16(2) }.isContiguous)
        let times = media.map { $0.u32(4) }
        #expect(zip(times, times.dropFirst()).allSatisfy { Int32(bitPattern: $1 &- $0) > 0 })
        let pictures = try media.map { bytes in
            let packet = try Packet(bytes.span)
            return try #require(VP8Descriptor(packet.payload)?.pictureID)
        }
        let steps = zip(pictures, pictures.dropFirst()).map { ($1 &- $0) & 0x7fff }
        #expect(steps.allSatisfy { $0 == 1 })
    }
}
