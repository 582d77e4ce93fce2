import RTP
import TestSupport
import Testing

@testable import Nodes

/// Messages of a journal, and what is written and waits.
@Suite struct JournalTests {
    private let start = Instant(nanoseconds: 5_000_000_000)

    private func entry(
        _ kind: JournalEntry.Kind,
        group: UInt64 = 1,
        isLast: Bool = true,
        boot: String = "life",
        _ records: [String: [UInt8]?] = [:]
    ) -> [UInt8] {
        var entry = JournalEntry(
            kind: kind,
            isLast: isLast,
            group: group,
            term: 7,
            clock: JournalClock(instant: Instant(nanoseconds: -3), unixTime: 1.5),
            home: NodeWorld.name("a"),
            boot: boot
        )
        entry.records = records.sorted { $0.key < $1.key }.map {
            JournalRecord(key: $0.key, value: $0.value)
        }
        return entry.encoded
    }

    @Test func `a message is read as it was written`() throws {
        let bytes = entry(.snapshot, isLast: false, ["k": [1, 2], "gone": nil, "empty": []])
        let read = try #require(JournalEntry(bytes))
        #expect(read.encoded == bytes)
        #expect(read.kind == .snapshot && !read.isLast && read.term == 7 && read.boot == "life")
        #expect(read.clock == JournalClock(instant: Instant(nanoseconds: -3), unixTime: 1.5))
        #expect(read.records.map(\.key) == ["empty", "gone", "k"])
        #expect(read.records.map(\.value) == [[], nil, [1, 2]])
    }

    @Test func `no damaged message is read, and none traps`() {
        let bytes = entry(.changes, ["k": [1, 2], "gone": nil])
        for length in bytes.indices { #expect(JournalEntry(Array(bytes[..<length])) == nil) }
        #expect(JournalEntry(bytes + [0]) == nil)
        #expect(JournalEntry([2] + bytes.dropFirst()) == nil)
        var random = SeededRandom(seed: 1)
        for _ in 0..<2_000 {
            var damaged = bytes
            let place = Int(random.pick(0...Int64(bytes.count - 1)))
            damaged[place] = UInt8(truncatingIfNeeded: random.pick(0...255) as Int64)
            _ = JournalEntry(damaged)
        }
        #expect(JournalContents([bytes, [9]]) == nil)
    }

    @Test func `records are in the words of the home that wrote them last`() throws {
        let first = entry(.snapshot, group: 1, boot: "old", ["a": [1]])
        let fence = entry(.fence, group: 1, boot: "new")
        let part = entry(.changes, group: 2, isLast: false, boot: "new", ["a": [2]])
        let last = entry(.changes, group: 2, boot: "new", ["b": [2]])
        let journal = [first, fence, part, last]
        let boots = try (1...4).map { try #require(JournalContents(Array(journal[..<$0]))).boot }
        #expect(boots == ["old", "old", "old", "new"])
        #expect(JournalContents([first])?.home == NodeWorld.name("a"))
    }

    @Test func `contents are what the last complete groups say`() {
        let messages = [
            entry(.changes, group: 1, ["a": [1], "b": [1]]),
            entry(.snapshot, group: 2, isLast: false, ["a": [2]]),
            entry(.snapshot, group: 2, ["c": [2]]),
            entry(.changes, group: 3, ["c": nil, "d": [3]]),
            // The writer was lost in the middle, and another goes on.
            entry(.snapshot, group: 4, isLast: false, ["x": [4]]),
            entry(.fence, group: 1, boot: "other"),
            entry(.changes, group: 2, boot: "other", ["e": [5]]),
        ]
        let contents = JournalContents(messages)
        #expect(contents?.records == ["a": [2], "d": [3], "e": [5]])
        #expect(JournalContents(Array(messages.prefix(2)))?.records == ["a": [1], "b": [1]])
        #expect(JournalContents([entry(.fence)])?.clock == nil)
    }

    @Test func `a long group takes several messages`() throws {
        var journal = RoomJournal()
        let value = [UInt8](repeating: 7, count: 200_000)
        journal.note((1...9).map { JournalRecord(key: "k\($0)", value: value) })
        let empty = try #require(JournalEntry(entry(.changes)))
        let hasBegun = journal.beginWriting(empty)
        #expect(hasBegun)
        let messages = try #require(journal.writing?.messages)
        #expect(messages.count == 5)
        #expect(messages.allSatisfy { $0.count < 1 << 20 })
        #expect(JournalContents(messages)?.records.count == 9)
        #expect(JournalContents(messages.dropLast())?.records.count == 0)
        for sequence in 1...4 as ClosedRange<UInt64> {
            let whole = journal.noteStored(at: sequence)
            #expect(whole == nil && journal.isBehind)
        }
        let whole = journal.noteStored(at: 5)
        #expect(whole?.first == 1)
        #expect(!journal.isBehind && journal.last == 5)
        journal.note([JournalRecord(key: "k", value: [UInt8](repeating: 0, count: 1 << 20))])
        let isWritten = journal.beginWriting(empty)
        #expect(journal.isTooLong && !isWritten)
    }

    /// A new home may have read a write that was not answered, but none that was refused.
    @Test(arguments: [false, true])
    func `a change that was not answered may be written`(mayBeStored: Bool) throws {
        let message = try #require(JournalEntry(entry(.changes)))
        var journal = RoomJournal(last: 4)
        journal.note([JournalRecord(key: "a", value: [1])])
        #expect(journal.written == 0)
        let hasBegun = journal.beginWriting(message)
        #expect(hasBegun && journal.written == 1)
        journal.giveUpWriting(mayBeStored: mayBeStored)
        #expect(journal.written == (mayBeStored ? 1 : 0))
        // Later changes are not in it.
        journal.note([JournalRecord(key: "b", value: [1])])
        #expect(journal.written == (mayBeStored ? 1 : 0))
    }

    @Test func `replies and events wait in order for what came before them`() throws {
        var journal = RoomJournal()
        let empty = try #require(JournalEntry(entry(.changes)))
        let end = start.advanced(milliseconds: 400)
        journal.note([JournalRecord(key: "a", value: [1])])
        journal.hold(.reply(guest: 1, []), until: end)
        journal.hold(.event(name: "x", seq: 4, []), until: end)
        let hasBegun = journal.beginWriting(empty)
        journal.note([JournalRecord(key: "b", value: [2])])
        journal.hold(.reply(guest: 2, []), until: end)
        let none = journal.takeReleased(at: start, isForced: false)
        #expect(hasBegun && none.isEmpty && journal.firstHeld == 4)
        let group = journal.noteStored(at: 9)
        let first = journal.takeReleased(at: start, isForced: false)
        #expect(group != nil && first.map(\.isStored) == [true, true])
        let late = journal.takeReleased(at: end, isForced: false)
        #expect(late.map(\.isStored) == [false])
        journal.hold(.reply(guest: 3, []), until: end)
        let forced = journal.takeReleased(at: start, isForced: true)
        #expect(forced.map(\.isStored) == [false])
    }

    static let lines = [
        (
            #"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            #"{"jsonrpc":"2.0","id":1,"result":{"durable":false}}"#
        ),
        (
            #"{"jsonrpc":"2.0","id":"a\",\"result\":{","result":{"node":"a"}}"#,
            #"{"jsonrpc":"2.0","id":"a\",\"result\":{","result":{"durable":false,"node":"a"}}"#
        ),
        (#"{"jsonrpc":"2.0","id":1,"error":{}}"#, #"{"jsonrpc":"2.0","id":1,"error":{}}"#),
    ]

    @Test(arguments: lines)
    func `a reply is marked in its result`(_ before: String, _ after: String) {
        #expect(String(decoding: NotDurable.mark(Array(before.utf8)), as: UTF8.self) == after)
    }
}
