import Foundation
import Testing

/// Input from the network must not trap (CONTRIBUTING.md).
///
/// `SFUD_TRAPS=print` prints the whole list as it would have to be, without bounds.
@Suite struct TrappingOperationTests {
    /// Folders and files that read received bytes, or keep numbers computed from them.
    static let places = [
        "Sources/Nodes/LinkMessage.swift",
        "Sources/RTP/", "Sources/SFU/Receive/", "Sources/SFU/Storage/PacketInfo.swift",
        "Sources/SFU/RTCP/ReceiveRTCP.swift", "Sources/SFU/RTCP/SendFeedback.swift",
        "Sources/SFU/Estimation/", "Sources/SFU/Allocation/", "Sources/SFU/Crypto/",
        "Sources/SFU/Transport/", "Sources/SFU/Layers/LayerMeter.swift",
        "Sources/SFU/Layers/SlotShare.swift",
        "Sources/SFU/ActiveSpeakers/PendingAudioDecodes.swift",
        "Sources/Recording/AV1Assembler.swift", "Sources/Recording/CaptureTimeline.swift",
        "Sources/Recording/Frame", "Sources/Recording/H264Assembler.swift",
        "Sources/Recording/ReorderBuffer.swift", "Sources/Recording/TrackReader.swift",
        "Sources/Recording/VPXFrame.swift",
        "Sources/RTPForward/PlainRTPSender.swift",
        "Sources/LiveStream/AudioMixer.swift", "Sources/LiveStream/DecodeBudget.swift",
        "Sources/LiveStream/StreamGrid.swift", "Sources/LiveStream/StreamMessage.swift",
        "Sources/LiveStream/TilePlayout.swift",
    ]
    static let sources = Source.all(under: "Sources").filter { source in
        places.contains { source.path.hasPrefix($0) }
    }
    static let exceptions = TrapExceptions()

    @Test func `the list of exceptions is well formed`() {
        #expect(!Self.exceptions.entries.isEmpty)
        for problem in Self.exceptions.problems { Issue.record("\(problem)") }
    }

    @Test func `the list has exactly the operations that can trap`() {
        var left: [String: [TrapKind: Int]] = [:]
        for entry in Self.exceptions.entries {
            left["\(entry.path) \(entry.declaration)"] = entry.counts
        }
        var met: Set<String> = []
        for source in Self.sources {
            let names = Self.exceptions.names(for: source.path)
            let found = TrappingOperations(in: source.text, knowing: names)
            met.formUnion(found.met)
            for (declaration, counts) in found.counts.sorted(by: { $0.key < $1.key }) {
                let excepted = left.removeValue(forKey: "\(source.path) \(declaration)")
                guard excepted != counts else { continue }
                report(declaration, counts, instead: excepted, of: found, in: source)
            }
        }
        for stale in left.keys.sorted() {
            Issue.record("\(TrapExceptions.path) has \(stale), where nothing is that can trap")
        }
        for name in Self.exceptions.names.values.joined() where !met.contains(name) {
            Issue.record("\(TrapExceptions.path) has \(name), which is met nowhere")
        }
    }

    private func report(
        _ declaration: String,
        _ counts: [TrapKind: Int],
        instead excepted: [TrapKind: Int]?,
        of found: TrappingOperations,
        in source: Source
    ) {
        let places = found.lines[declaration, default: [:]].sorted { $0.key < $1.key }
            .map { "\($0.key.rawValue) in \($0.value.map(String.init).joined(separator: ", "))" }
        Issue.record(
            """
            \(source.path): \(declaration) can trap by \(places.joined(separator: "; ")). \
            Make it wrap, clamp or guard; or prove that it cannot, and \
            \(excepted == nil ? "add to" : "change in") \(TrapExceptions.path):
            \(source.path)
            \(TrapExceptions.line(declaration, counts))
                = the bound
            """
        )
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["SFUD_TRAPS"] == "print"))
    func `the list is printed`() {
        for source in Self.sources {
            let names = Self.exceptions.names(for: source.path)
            let found = TrappingOperations(in: source.text, knowing: names)
            guard !found.counts.isEmpty else { continue }
            print(source.path)
            for (declaration, counts) in found.counts.sorted(by: { $0.key < $1.key }) {
                print(TrapExceptions.line(declaration, counts))
            }
        }
    }

    /// A statement, and its operations that can trap.
    struct Case: CustomTestStringConvertible {
        var text: String
        var kinds: [TrapKind: Int]

        init(_ text: String, _ kinds: [TrapKind: Int]) {
            self.text = text
            self.kinds = kinds
        }

        var testDescription: String { text }
    }

    static let cases: [Case] = [
        Case("a + b * c - d", [.arithmetic: 3]), Case("a += b; a -= b; a *= b", [.arithmetic: 3]),
        Case("a &+ b &* c; a &-= b", [:]), Case("-a", [.arithmetic: 1]), Case("f(-1)", [:]),
        Case("f(-a)", [.arithmetic: 1]), Case("abs(a)", [.arithmetic: 1]),
        Case("a / b; a % b", [.division: 2]), Case("a / 1_000", [:]),
        Case("a * 0.5 + 1.5", [:]), Case("30 * 1_000 + 2", [:]),
        Case("2 * a + 1", [.arithmetic: 2]), Case("a / 8 * 2", [.arithmetic: 1]),
        Case(#""x" + y"#, [:]), Case(#""a\(b + c)d""#, [.arithmetic: 1]),
        Case("\"\"\"\na - b \\(c)\n\"\"\"", [:]), Case("a // b + c\n/* d + e */", [:]),
        Case("Int(a)", [.conversion: 1]), Case("Int(truncatingIfNeeded: a)", [:]),
        Case("UInt8(clamping: a)", [:]), Case("Int(a & 0x7f)", [:]),
        Case("Int(a + b & 0x7f)", [.arithmetic: 1, .conversion: 1]),
        Case("Int(UInt16(clamping: a))", [:]), Case("UInt16(Int(exactly: a))", [.conversion: 1]),
        Case("Int(bytes.u16(at: 2))", [:]), Case("UInt16(bytes.u16(at: 2))", [.conversion: 1]),
        Case("Int(slot); Int(a.slots[b].slot)", [:]), Case("Int(slot.a)", [.conversion: 1]),
        Case("a[b]", [.subscript: 1]), Case("[a]; [Int](); f([b])", [:]),
        Case("slots[a].b[c]", [.subscript: 1]), Case("a[b, default: 0]", [:]),
        Case("for i in a.indices { a[i]; b[i] }; a[i]", [.subscript: 2]),
        Case(
            "for i in 0..<a.b.count where a.b[i] { a.b.remove(at: i); a.b[i] }",
            [
                .subscript: 1, .removal: 1,
            ]
        ),
        Case("a..<b; a...b", [.range: 2]), Case("0...15; 0..<a.b.count", [:]),
        Case("0..<a.count - 1", [.range: 1, .arithmetic: 1]),
        Case("a.extracting(b)", [.slice: 1]), Case("a.prefix(8); a.dropFirst()", [:]),
        Case("a.extracting(droppingFirst: 1)", [:]), Case("a.prefix(b)", [.slice: 1]),
        Case("a.removeFirst(); a.remove(at: b)", [.removal: 2]),
        Case("a.insert(b, at: c); a.insert(b)", [.removal: 1]),
        Case("a.index(after: b)", [.subscript: 1]), Case("a.map(Int.init)", [.conversion: 1]),
        Case("a.quotientAndRemainder(dividingBy: b)", [.division: 1]),
        Case("precondition(a); assert(b); preconditionFailure()", [.precondition: 3]),
        Case("a!.b; try! c(); d as! E", [.unwrap: 3]), Case("!a && b != c", [:]),
    ]

    @Test(arguments: cases)
    func `finds the trapping operations of a statement`(_ statement: Case) {
        let text = "struct T { func f() { \(statement.text) } }"
        let found = TrappingOperations(in: text, knowing: ["[slots]", "Int(slot)"])
        #expect(found.counts == (statement.kinds.isEmpty ? [:] : ["T.f": statement.kinds]))
    }

    @Test func `operations are counted by declaration`() {
        let text = """
            extension Outer.Inner {
                static let first = 1 + second
                private var third: Int { a + b }
                @_lifetime(copy a) init?(_ a: Int = x + y) { self = .init(a + b) }
                struct Deep { subscript(a: Int) -> Int { get { if c { d + e }; return f } } }
                func g<T>() -> T where T: A { let h = { i + j }; func k() { l + m } }
            }
            func n() { o + p }
            """
        let found = TrappingOperations(in: text).counts.mapValues { $0[.arithmetic] ?? 0 }
        #expect(
            found == [
                "Outer.Inner.first": 1, "Outer.Inner.third": 1, "Outer.Inner.init": 2,
                "Outer.Inner.Deep.subscript": 1, "Outer.Inner.g": 2, "n": 1,
            ]
        )
    }

    @Test func `an exception without a bound or in a wrong form is refused`() {
        let bad = [
            "a\n  b: 1 range\n", "a\n  b: 1 range\n    = \n", "a\n  b: 1 wonder\n    = c d e\n",
            "a\n  b: 1 range\n    = c d e\n  b: 1 range\n    = c d e\n",
        ]
        for text in bad { #expect(TrapExceptions(text).problems.count == 1, "\(text)") }
        #expect(TrapExceptions("a\n  b: 1 range\n  [c]\n    = d e f\n").problems == [])
    }
}
