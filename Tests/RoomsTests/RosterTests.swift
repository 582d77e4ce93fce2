import Testing

@testable import Rooms

@Suite struct RosterTests {
    private struct Entry: RosterElement, Equatable {
        var birth: UInt64
        var isListed = true
    }

    @Test func `lists keep the order of birth, whatever comes and goes`() {
        var register = Roster<Entry>()
        for (name, birth) in [("c", 3), ("a", 1), ("d", 4), ("b", 2)] {
            register[name] = Entry(birth: UInt64(birth), isListed: name != "c")
        }
        #expect(register.listedNames == ["a", "b", "d"])
        #expect(register.unlisted.map(\.birth) == [3])
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
            default:
                register[name] = Entry(birth: birth)
                plain[name] = Entry(birth: birth)
            }
            let sorted = plain.values.sorted { $0.birth < $1.birth }
            #expect(register.listed == sorted.filter(\.isListed))
            #expect(register.unlisted == sorted.filter { !$0.isListed })
        }
    }
}
