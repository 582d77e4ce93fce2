import Testing

@testable import ControlPlane

@Suite struct ControlJournalTests {
    @Test func `of a closed room only the last event is kept`() {
        var journals = EventJournals(eventLimit: 10)
        journals.open("r")
        for _ in 0..<5 { Self.tell(&journals) }
        #expect(journals.missed("r", since: 3) == .lines([Self.line(4), Self.line(5)]))
        journals.close("r")
        #expect(journals.missed("r", since: 3) == .expired(5))
        #expect(journals.missed("r", since: 4) == .lines([Self.line(5)]))
        // Reported late, after the fence of the call that closed it.
        Self.tell(&journals)
        #expect(journals.missed("r", since: 4) == .expired(6))
        #expect(journals.missed("r", since: 5) == .lines([Self.line(6)]))
    }

    @Test func `a room made again goes on counting`() {
        var journals = EventJournals(eventLimit: 10)
        journals.open("r")
        for _ in 0..<3 { Self.tell(&journals) }
        journals.close("r")
        journals.open("r")
        Self.tell(&journals)
        #expect(journals.missed("r", since: 2) == .lines([Self.line(3), Self.line(4)]))
    }

    private static func line(_ byte: UInt8) -> EventLine {
        EventLine(name: "room.updated", line: [byte])
    }

    private static func tell(_ journals: inout EventJournals) {
        let seq = journals.number("r")
        journals.append(Operation.Event(seq: seq, line: line(UInt8(seq))), "r")
    }
}
