import RTP
import Rooms
import TestSupport
import Testing
import WorkerInterface

/// Random clients: invariants hold after any number of offers.
struct NegotiationRandomTests {
    /// A client and its memory of earlier answers.
    struct Client {
        var bench: NegotiationBench
        var offer = TestOffer([])
        var random: SeededRandom
        var nextMID = 0
        var last: Answer?
        var live: (publications: Set<PublicationID>, slots: Set<SlotID>) = ([], [])

        init(seed: UInt64) {
            bench = NegotiationBench(seed: seed)
            random = SeededRandom(seed: seed ^ 0xffff)
        }

        mutating func line(port: Int = 9) -> TestOffer.Line {
            defer { nextMID += 1 }
            let kind = ["audio", "video", "video", "application"].randomElement(using: &random)
            let way = ["sendonly", "recvonly", "sendrecv", "inactive"].randomElement(using: &random)
            var line = TestOffer.Line(
                mid: "m\(nextMID)",
                kind: kind ?? "audio",
                direction: way ?? "sendonly"
            )
            if kind == "video", Bool.random(using: &random) { line.rids = ["q", "h", "f"] }
            if Int.random(in: 0..<10, using: &random) == 0 { line.isBundled = false }
            return line
        }

        mutating func change() {
            let index = Int.random(in: 0...offer.lines.count, using: &random)
            guard index < offer.lines.count else {
                if index < 20 { offer.lines.append(line()) }
                return
            }
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where offer.lines[index].port == 0 && last?.media[index].isRejected == true:
                offer.lines[index] = line()
            case 1:
                offer.lines[index].port = 0
            case 2:
                offer.fragment = "f\(random.next())"
                offer.password = "p123456789012345678901\(random.next())"
            default:
                let way = ["sendonly", "recvonly", "sendrecv", "inactive"]
                offer.lines[index].direction = way.randomElement(using: &random) ?? "inactive"
            }
        }

        mutating func refusals() -> [String: String] {
            var refusals: [String: String] = [:]
            for line in offer.lines where Int.random(in: 0..<8, using: &random) == 0 {
                refusals[line.mid] = "role"
            }
            return refusals
        }

        /// Makes an offer, takes the answer and returns the violations in it.
        mutating func negotiate() -> [String] {
            let text = offer.text
            let answer: Answer
            do {
                answer = try bench.answer(text, refusing: refusals())
            } catch {
                // An offer without media may be refused: it has no m-line to negotiate the
                // transport with.
                let hasMedia = offer.lines.contains { $0.kind != "application" && $0.port != 0 }
                return hasMedia ? ["refused: \(error.cause)"] : []
            }
            var wrong = AnswerInvariants(offer: text, answer: answer.sdp).violations
            wrong += compare(answer)
            for ended in answer.endedPublications { bench.identifiers.publications.release(ended) }
            for ended in answer.endedSlots { bench.identifiers.slots.release(ended) }
            if bench.identifiers.publications.used != live.publications.count
                || bench.identifiers.slots.used != live.slots.count
            {
                wrong.append("identifiers leak")
            }
            last = answer
            return wrong
        }

        /// Compares an answer with the previous one.
        private mutating func compare(_ answer: Answer) -> [String] {
            var wrong: [String] = []
            let publications = Set(answer.configuration.publications.map(\.id))
            let slots = Set(answer.configuration.slots.map(\.id))
            if publications != Set(answer.media.compactMap(\.publication)) {
                wrong.append("publications")
            }
            if slots != Set(answer.media.compactMap(\.slot)) { wrong.append("slots") }
            if live.publications.subtracting(publications) != Set(answer.endedPublications) {
                wrong.append("ended publications")
            }
            if live.slots.subtracting(slots) != Set(answer.endedSlots) {
                wrong.append("ended slots")
            }
            live = (publications, slots)
            guard let last else { return wrong }

            let isRestart =
                last.configuration.ice.remoteFragment != answer.configuration.ice.remoteFragment
            if isRestart != answer.isICERestart { wrong.append("restart flag") }
            let hasMoved =
                last.configuration.ice.localPassword != answer.configuration.ice.localPassword
            if hasMoved != isRestart { wrong.append("credentials") }
            for slot in last.configuration.slots {
                guard let now = answer.configuration.slots.first(where: { $0.mid == slot.mid })
                else {
                    continue
                }
                if now.ssrc != slot.ssrc || now.rtxSSRC != slot.rtxSSRC || now.id != slot.id {
                    wrong.append("slot of \(slot.mid) moved")
                }
            }
            let ssrcs = answer.configuration.slots.flatMap {
                [$0.ssrc, $0.rtxSSRC].compactMap(\.self)
            }
            if Set(ssrcs).count != ssrcs.count { wrong.append("SSRC twice") }
            return wrong
        }
    }

    @Test(arguments: Extent.seeds(20, short: 6))
    func `fifty renegotiations keep what must be kept`(seed: UInt64) {
        var client = Client(seed: seed)
        client.offer.lines = [.init(mid: "first", direction: "sendrecv")]
        for round in 0..<50 {
            for _ in 0..<3 { client.change() }
            let wrong = client.negotiate()
            #expect(wrong == [], "round \(round)\n\(client.offer.text)")
            if !wrong.isEmpty { break }
        }
    }

    /// Checks that an offer, rejected or answered, leaves a state that allows the next one.
    @Test(arguments: Extent.seeds(8, short: 3))
    func `a mutated offer is refused or answered, and never more`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let base = TestOffer([
            .init(mid: "0", direction: "sendrecv"),
            .init(
                mid: "1",
                kind: "video",
                direction: "sendrecv",
                extra: ["ssrc-group:FID 1 2", "ssrc:1 cname:x", "ssrc:2 cname:x"],
                rids: ["q", "h"]
            ),
            .init(mid: "2", kind: "application"),
        ]).text
        var bench = NegotiationBench(seed: seed, publications: 100, slots: 100)
        var answered = 0
        for _ in 0..<500 {
            let text = mutate(base, using: &random)
            let used = bench.identifiers.publications.used
            if let error = bench.failure(text) {
                let lines = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
                #expect((0...lines).contains(error.line))
                #expect(bench.identifiers.publications.used == used)
            } else {
                answered += 1
                let answer = try bench.answer(text)
                let read = try SessionDescription(answer.sdp)
                #expect(read.media.count == answer.media.count)
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                bench = NegotiationBench(seed: seed, publications: 100, slots: 100)
            }
        }
        #expect(answered > 50)
    }

    private func mutate(_ text: String, using random: inout SeededRandom) -> String {
        var lines = text.split(separator: "\n").map { Array($0.utf8) }
        let marks = Array(" :/;=,~-09\0\r\u{7f}é*".utf8)
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let index = Int.random(in: 0..<lines.count, using: &random)
            let other = Int.random(in: 0..<lines.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: lines.remove(at: index)
            case 1: lines.insert(lines[other], at: index)
            case 2: lines.swapAt(index, other)
            case 3: lines[index].removeLast(Int.random(in: 0...lines[index].count, using: &random))
            case 4:
                let numbers = [
                    "0", "-1", "65536", "4294967296", "18446744073709551616", "127", "96",
                ]
                let parts = lines[index].split(separator: UInt8(ascii: " "))
                var kept = parts.map { Array($0) }
                let number = numbers.randomElement(using: &random) ?? "0"
                if !kept.isEmpty {
                    kept[Int.random(in: 0..<kept.count, using: &random)] = Array(number.utf8)
                }
                lines[index] = Array(kept.joined(separator: [UInt8(ascii: " ")]))
            default:
                let place = Int.random(in: 0...lines[index].count, using: &random)
                lines[index].insert(marks.randomElement(using: &random) ?? 0, at: place)
            }
            if lines.isEmpty { lines = [Array("v=0".utf8)] }
        }
        return String(decoding: Array(lines.joined(separator: [UInt8(ascii: "\n")])), as: UTF8.self)
    }
}
