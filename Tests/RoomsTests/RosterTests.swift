import Synchronization
import Testing

@testable import Rooms

@Suite struct RosterTests {
    private struct Entry: RosterElement, Equatable {
        var birth: UInt64
        var isListed = true
        var isMarked = false
    }

    /// Entry that counts how often it is asked whether it is marked.
    private struct CountingEntry: RosterElement {
        final class Count: Sendable {
            let value = Mutex(0)
        }

        var birth: UInt64
        let isListed = true
        let count: Count

        var isMarked: Bool {
            count.value.withLock { $0 += 1 }
            return birth % 100 == 0
        }
    }

    @Test func `marked entries are kept, not looked for`() {
        let count = CountingEntry.Count()
        var roster = Roster<CountingEntry>()
        for birth in 1...1_000 as ClosedRange<UInt64> {
            roster["n\(birth)"] = CountingEntry(birth: birth, count: count)
        }
        let asked = count.value.withLock { $0 }
        #expect(asked <= 2_000, "twice for each change at most")
        for _ in 0..<1_000 { #expect(roster.markedNames.count == 10) }
        #expect(count.value.withLock { $0 } == asked)
    }

    @Test func `changes of the list are told since a version, unless they are many`() {
        var roster = Roster<Entry>()
        roster["a"] = Entry(birth: 1)
        let version = roster.listVersion
        #expect(roster.listChanges(since: version) == [])
        roster["a"]?.isMarked = true
        #expect(roster.listVersion == version)
        roster["b"] = Entry(birth: 2)
        roster["a"]?.isListed = false
        #expect(roster.listChanges(since: version) == ["b", "a"])
        for birth in 3..<200 as Range<UInt64> {
            roster["b"] = nil
            roster["b"] = Entry(birth: birth)
        }
        #expect(roster.listChanges(since: version) == nil)
        #expect(roster.listChanges(since: roster.listVersion &- 64)?.count == 64)
    }

    @Test func `lists keep the order of birth, whatever comes and goes`() {
        var register = Roster<Entry>()
        for (name, birth) in [("c", 3), ("a", 1), ("d", 4), ("b", 2)] {
            register[name] = Entry(birth: UInt64(birth), isListed: name != "c")
        }
        #expect(register.listedNames == ["a", "b", "d"])
        #expect(register.unlisted.map(\.birth) == [3])
        #expect(register.allNames(after: 1).map { $0.name } == ["b", "c", "d"])
        register["c"]?.isListed = true
        register["a"] = nil
        #expect(register.listed.map(\.birth) == [2, 3, 4])
        // The same name, created again.
        register["b"] = Entry(birth: 5)
        #expect(register.listedNames == ["c", "d", "b"])
        #expect(register.unlisted.isEmpty)
        #expect(register.count == 3)
    }

    @Test func `each touched entry is reported once`() {
        var register = Roster<Entry>()
        register["a"] = Entry(birth: 1)
        register["b"] = Entry(birth: 2)
        #expect(register.takeChanged() == ["a", "b"])
        register["b"]?.isListed = false
        _ = register["a"]
        #expect(register.takeChanged() == ["b"])
        register["a"] = nil
        #expect(register.takeChanged() == ["a"])
        #expect(register.takeChanged().isEmpty)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `it is a dictionary sorted by birth`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var register = Roster<Entry>()
        var plain: [String: Entry] = [:]
        for birth in 0..<2_000 as Range<UInt64> {
            let name = "n\(random.next() % 50)"
            switch random.next() % 4 {
            case 0:
                register[name] = nil
                plain[name] = nil
            case 1:
                register[name]?.isListed.toggle()
                plain[name]?.isListed.toggle()
                register[name]?.isMarked.toggle()
                plain[name]?.isMarked.toggle()
            default:
                register[name] = Entry(birth: birth)
                plain[name] = Entry(birth: birth)
            }
            let sorted = plain.values.sorted { $0.birth < $1.birth }
            #expect(register.listed == sorted.filter(\.isListed))
            #expect(register.unlisted == sorted.filter { !$0.isListed })
            #expect(register.markedNames.compactMap { plain[$0] } == sorted.filter(\.isMarked))
        }
    }
}
