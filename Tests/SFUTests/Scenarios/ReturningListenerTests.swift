import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Listeners who return to a speaker whose packets they have received.
///
/// No packet is sent twice, and none under a used index, although send times differ each time.
struct ReturningListenerTests {
    /// Two speakers, a listener with one slot, and the ledger of all that leaves.
    private struct Scene: ~Copyable {
        var call: Call
        let ledger = PacketLedger(engine: .best)
        var sequences: [UInt16] = [0, 0]
        private static let talkers = [
            PublicationID(index: 0, generation: 1), PublicationID(index: 1, generation: 1),
        ]
        private static let slot = SlotID(index: 2, generation: 1)

        init(_ engine: SRTPEngine, _ profile: SRTPProfile) throws {
            call = try Call(profiles: [profile], engine: engine)
            let ledger = ledger
            call.inspects = { peer, datagram in ledger.note(datagram, to: peer) }
            call.join(publications: [Media.audio(0, ssrc: 0x1111)])
            call.join(publications: [Media.audio(1, ssrc: 0x2222)])
            var slot = Media.slot(2, kind: .audio, ssrc: 0xbbbb)
            slot.extensions[.absoluteSendTime] = 5
            slot.extensions[.transportSequenceNumber] = 7
            call.join(slots: [slot])
            for peer in 0..<3 { call.connect(peer) }
        }

        /// Lets both talk for a while, 20 ms a packet, each packet identified in its payload.
        mutating func talk(milliseconds: Int) {
            for _ in 0..<milliseconds / 20 {
                for talker in 0..<2 {
                    let sequence = sequences[talker]
                    let packet = Media.packet(
                        payloadType: 111,
                        sequence: sequence,
                        timestamp: UInt32(sequence) * 960,
                        ssrc: talker == 0 ? 0x1111 : 0x2222,
                        elements: [(1, [20]), (4, Array("0".utf8))],
                        payload: [0x78, UInt8(talker)] + sequence.bytes
                            + Array(repeating: 0x55, count: 60)
                    )
                    call.send(packet, from: talker)
                    sequences[talker] &+= 1
                }
                call.run(milliseconds: 20)
            }
        }

        func binding(to talker: Int) -> Binding {
            var binding = Binding(
                publication: Self.talkers[talker],
                subscription: UInt64(talker + 7),
                open: true
            )
            binding.from = call.now.advanced(milliseconds: -400)
            return binding
        }

        /// Binds the slot; without `lettingOut` further commands follow before anything is sent.
        mutating func bind(_ talker: Int?, lettingOut: Bool = true) {
            let command = WorkerCommand.bind(Self.slot, talker.map { binding(to: $0) })
            guard !lettingOut else { return call.apply(command) }
            call.core.apply(command, at: call.now, into: &call.output)
        }

        /// Speakers and numbers of the received packets, in order.
        var heard: [[UInt8]] {
            call.peers[2].payloads(of: 0xbbbb).map { Array($0[1...3]) }
        }
    }

    enum Story: String, CaseIterable, CustomTestStringConvertible {
        case comesBack = "follow, unfollow, follow"
        case twiceBeforeFlush = "follow, unfollow, follow before one flush"
        case boundTwice = "two binds before one flush"
        case pinsThereAndBack = "pin to another and back"
        case pinsBeforeFlush = "pin to another and back before one flush"
        case displaced = "the talker is displaced and comes back, again and again"

        var testDescription: String { rawValue }
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var story: Story
        var engine: SRTPEngine
        var profile: SRTPProfile

        var testDescription: String { "\(story.rawValue), \(engine.rawValue), \(profile.name)" }
    }

    static let rows = Story.allCases.flatMap { story in
        SRTPEngine.available.flatMap { engine in
            [SRTPProfile.aeadAes128Gcm, .aes128CmSha1_80].map {
                Row(story: story, engine: engine, profile: $0)
            }
        }
    }

    @Test(arguments: rows)
    func `nobody gets a packet twice, nor two under one index`(_ row: Row) throws {
        var scene = try Scene(row.engine, row.profile)
        scene.talk(milliseconds: 500)
        scene.bind(0)
        scene.talk(milliseconds: 200)
        switch row.story {
        case .comesBack:
            scene.bind(nil)
            scene.bind(0)
        case .twiceBeforeFlush:
            scene.bind(nil, lettingOut: false)
            scene.bind(0, lettingOut: false)
            scene.bind(nil, lettingOut: false)
            scene.bind(0)
        case .boundTwice:
            scene.bind(1, lettingOut: false)
            scene.bind(1)
        case .pinsThereAndBack:
            scene.bind(1)
            scene.bind(0)
        case .pinsBeforeFlush:
            scene.bind(1, lettingOut: false)
            scene.bind(0)
        case .displaced:
            for turn in 0..<20 {
                scene.bind((turn + 1) % 2)
                scene.talk(milliseconds: 20 * (turn % 4))
            }
        }
        scene.talk(milliseconds: 300)
        let ledger = scene.ledger
        let heard = scene.heard
        #expect(ledger.faults.isEmpty)
        #expect(ledger.repeats == 0)
        #expect(ledger.undecryptable == 0)
        #expect(Set(heard).count == heard.count, "a packet was heard twice")
        #expect(scene.call.peers[2].numbers(of: 0xbbbb).isContiguous)
        // The first words of each new speaker were heard, and all live packets since.
        #expect(heard.count >= 20 + 10 + 15)
        let last = try #require(heard.last)
        let talker = Int(last[0])
        #expect([last[1], last[2]] == (scene.sequences[talker] &- 1).bytes)
    }
}

/// Indexes that may still be sent late.
struct UnsentIndexTests {
    @Test func `only what was passed over is unsent, once, and within the window`() {
        var unsent = UnsentIndexes()
        unsent.passOver(100..<103)
        let found = (99...103).filter { unsent.contains($0) }
        #expect(found == [100, 101, 102])
        unsent.remove(101)
        #expect(!unsent.contains(101))
        // The same bits of the window, one window later.
        #expect(!unsent.contains(100 + 1_024))
        unsent.passOver(100 + 1_024..<101 + 1_024)
        #expect(unsent.contains(100 + 1_024))
        #expect(!unsent.contains(102), "a block that is gone says nothing")
    }

    @Test func `a leap marks no more than the window`() {
        var unsent = UnsentIndexes()
        unsent.passOver(10..<1_000_000_000_000)
        #expect(unsent.contains(1_000_000_000_000 - 1))
        #expect(unsent.contains(1_000_000_000_000 - 1_024))
        #expect(!unsent.contains(1_000_000_000_000 - 1_025))
        #expect(!unsent.contains(10))
    }

    @Test func `renumbered packets are forgotten`() {
        var unsent = UnsentIndexes()
        unsent.passOver(60..<200)
        unsent.removeAll(from: 130)
        #expect(unsent.contains(129) && !unsent.contains(130) && !unsent.contains(199))
        unsent.removeAll(from: 0)
        #expect(!unsent.contains(60))
    }

    @Test func `agrees with a set for every seed`() {
        for seed in 0..<50 as Range<UInt64> {
            var noise = SeededRandom(seed: seed)
            var unsent = UnsentIndexes()
            var model: Set<Int64> = []
            var highest = Int64(noise.next() % 60_000)
            for _ in 0..<2_000 {
                switch noise.next() % 8 {
                case 0...3: highest += 1
                case 4:
                    let most: UInt64 = noise.next() % 9 == 0 ? 1_500 : 90
                    let next = highest + 1 + Int64(noise.next() % most)
                    unsent.passOver(highest + 1..<next)
                    model.formUnion(max(highest + 1, next - 1_024)..<max(highest + 1, next))
                    highest = next
                case 5, 6:
                    let index = highest - Int64(noise.next() % 200)
                    #expect(unsent.contains(index) == model.contains(index), "seed \(seed)")
                    unsent.remove(index)
                    model.remove(index)
                default:
                    let index = highest - Int64(noise.next() % 20)
                    unsent.removeAll(from: index)
                    model = model.filter { $0 < index }
                    highest = index - 1
                }
                model = model.filter { $0 > highest - 1_024 }
            }
        }
    }
}

#if DEBUG
    /// The cipher's own refusal of a second packet under one index.
    struct SentIndexesTests {
        @Test func `a second, other packet under one key and index is a trap`() async throws {
            for engine in SRTPEngine.available {
                try Self.protect(engine, [7, 7])
                try Self.protect(engine, [7, 7], [7, 7])
            }
            await #expect(processExitsWith: .failure) {
                try SentIndexesTests.protect(.best, [7, 7], [7, 8])
            }
            await #expect(processExitsWith: .failure) {
                let portable = try #require(SRTPEngine.available.last)
                try SentIndexesTests.protect(portable, [7, 7], [7, 8])
            }
        }

        @Test(arguments: SRTPEngine.available)
        func `the core's own sessions are held to it`(engine: SRTPEngine) throws {
            let call = try Call(engine: engine)
            let isHeld = call.core.transports.srtpContext.indexReuseDetector() != nil
            #expect(isHeld)
        }

        /// Protects packets with these payloads, all under one index.
        static func protect(_ engine: SRTPEngine, _ payloads: [UInt8]...) throws {
            let context = SRTPContext(engine: engine, refusesReuse: true)
            var ends = try SRTPEnds(.aeadAes128Gcm, engine, context: context)
            for payload in payloads {
                var bytes = [UInt8](repeating: 0, count: 64)
                bytes.replaceSubrange(0..<12, with: [0x80, 96, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9])
                var output = bytes.mutableSpan
                _ = try ends.sender.protectRTP(
                    &output,
                    headerLength: 12,
                    prefixLength: 0,
                    rest: payload.span,
                    index: 5
                )
                context.finish()
            }
        }
    }
#endif
