import TestSupport
import Testing

@testable import Records

/// The log of records: what is committed is found again, whatever the process was doing.
@Suite struct RecordLogTests {
    typealias Model = [String: [RecordKey: [UInt8]]]

    /// Random groups of changes to a few scopes, and what is left of them.
    struct Source {
        var model: Model = [:]
        var random: SeededRandom

        init(seed: UInt64) { random = SeededRandom(seed: seed) }

        mutating func next(longest: Int64 = 60) -> RecordGroup {
            let scope = "room-\(random.pick(0...4))"
            var group = RecordGroup(scope: scope)
            if random.chance(0.03) {
                group.clears = true
                model[scope] = nil
            }
            for _ in 0..<random.pick(1...6) {
                let key = RecordKey(0x70, UInt64(random.pick(0...12)))
                var value: [UInt8]?
                if !random.chance(0.3) {
                    let byte = UInt8(truncatingIfNeeded: random.next())
                    value = [UInt8](repeating: byte, count: Int(random.pick(0...longest)))
                }
                group.changes.append(RecordChange(key, value))
                model[scope, default: [:]][key] = value
            }
            if model[scope]?.isEmpty == true { model[scope] = nil }
            return group
        }
    }

    /// Memory of a region, with copies of it that a killed process would leave.
    @safe final class Memory {
        let bytes: UnsafeMutableRawBufferPointer

        init(_ count: Int) {
            unsafe bytes = .allocate(byteCount: count, alignment: 64)
            unsafe bytes.initializeMemory(as: UInt8.self, repeating: 0xa5)
        }

        deinit { unsafe bytes.deallocate() }

        var copy: [UInt8] { unsafe Array(bytes) }

        struct TooShort: Error {}

        func log() throws(TooShort) -> RecordLog {
            guard let log = unsafe RecordLog(formatting: bytes) else { throw TooShort() }
            return log
        }
    }

    static func read(_ bytes: [UInt8]) -> Result<SavedRecords, SavedRecords.Failure> {
        unsafe bytes.withUnsafeBytes { memory in
            do throws(SavedRecords.Failure) {
                return .success(unsafe try SavedRecords(reading: memory))
            } catch {
                return .failure(error)
            }
        }
    }

    @Test(arguments: Extent.seeds(3, short: 1))
    func `what is saved is read again, over many compactions`(seed: UInt64) throws {
        let memory = Memory(8_000)
        var freed = 0
        let log = unsafe RecordLog(formatting: memory.bytes) { part in
            freed += 1
            unsafe part.initializeMemory(as: UInt8.self, repeating: 0)
        }
        guard let log else { throw Memory.TooShort() }
        var source = Source(seed: seed)
        for _ in 0..<400 {
            let isSaved = log.append(source.next())
            #expect(isSaved)
            let read = try Self.read(memory.copy).get()
            try #require(read.scopes == source.model && read.lost == 0)
        }
        let compactions = log.compactions
        #expect(compactions > 10 && freed == compactions)
    }

    /// A process killed between two stores, or within the bytes of one, leaves the last group that
    /// was committed, and it alone.
    @Test(arguments: Extent.seeds(3, short: 1))
    func `a write that is cut anywhere leaves the group before it whole`(seed: UInt64) throws {
        let memory = Memory(8_000)
        let log = try memory.log()
        var source = Source(seed: seed)
        var (cuts, switches) = (0, 0)
        for _ in 0..<80 {
            let before = (model: source.model, bytes: memory.copy)
            var stores: [(place: Int, bytes: [UInt8])] = []
            log.region.onStore = { stores.append(($0, $1)) }
            let compactions = log.compactions
            let isSaved = log.append(source.next())
            #expect(isSaved)
            switches += log.compactions - compactions
            var image = before.bytes
            for (index, store) in stores.enumerated() {
                // A word is stored whole; other bytes in any number.
                let isWord = store.place < RecordRegion.headerSize
                for count in isWord ? [0] : Array(0..<store.bytes.count) {
                    image.replaceSubrange(
                        store.place..<store.place + count,
                        with: store.bytes.prefix(count)
                    )
                    guard isWord || count % 29 == 0 || index < 2 && count % 5 == 0 else { continue }
                    cuts += 1
                    let found = try Self.read(image).get()
                    let isCommitted = found.scopes == source.model
                    try #require(found.lost == 0 && (isCommitted || found.scopes == before.model))
                    // The tail is the second store: nothing may be missing behind it.
                    if index > 1 { try #require(isCommitted) }
                }
                image.replaceSubrange(
                    store.place..<store.place + store.bytes.count,
                    with: store.bytes
                )
            }
            try #require(image == memory.copy)
        }
        #expect(cuts > 1_000 && switches > 1)
    }

    @Test(arguments: Extent.seeds(4, short: 1))
    func `a damaged bit costs one scope, and nothing traps`(seed: UInt64) throws {
        let memory = Memory(30_000)
        let log = try memory.log()
        var source = Source(seed: seed)
        for _ in 0..<120 { log.append(source.next()) }
        let bytes = memory.copy
        var (whole, lost, refused) = (0, 0, 0)
        for _ in 0..<600 {
            var damaged = bytes
            let place = Int(source.random.pick(0...Int64(bytes.count - 1)))
            damaged[place] ^= UInt8(1 << source.random.pick(0...7))
            guard case .success(let found) = Self.read(damaged) else {
                refused += 1
                #expect(place < RecordRegion.headerSize)
                continue
            }
            if place < RecordRegion.headerSize { continue }
            #expect(found.lost <= 1)
            for (scope, records) in found.scopes { #expect(source.model[scope] == records) }
            #expect(found.scopes.count >= source.model.count - found.lost)
            if found.lost == 0 { whole += 1 } else { lost += 1 }
        }
        #expect(whole > 50 && lost > 20)
    }

    @Test func `any bytes at all are read without a trap`() throws {
        let memory = Memory(6_000)
        let log = try memory.log()
        var source = Source(seed: 9)
        for _ in 0..<80 { log.append(source.next()) }
        let bytes = memory.copy
        for length in stride(from: 0, to: bytes.count, by: 13) {
            _ = Self.read(Array(bytes.prefix(length)))
        }
        for _ in 0..<600 {
            var damaged = bytes
            for _ in 0..<source.random.pick(1...40) {
                let place = Int(source.random.pick(0...Int64(bytes.count - 1)))
                damaged[place] = UInt8(truncatingIfNeeded: source.random.next())
            }
            if source.random.chance(0.5) { damaged.replaceSubrange(0..<48, with: bytes[0..<48]) }
            _ = Self.read(damaged)
        }
    }

    @Test func `a full log stops, and nothing is restored from it`() throws {
        let memory = Memory(4_000)
        let log = try memory.log()
        var group = RecordGroup(scope: "r")
        var count: UInt64 = 0
        repeat {
            count += 1
            group.changes = [RecordChange(RecordKey(1, count), [UInt8](repeating: 1, count: 50))]
        } while log.append(group) && count < 1_000
        #expect((20...35).contains(count))
        let isUsable = log.isUsable
        #expect(!isUsable)
        #expect(Self.read(memory.copy) == .failure(.stopped))
        group.changes = [RecordChange(RecordKey(1, 1), nil)]
        let isSaved = log.append(group)
        #expect(!isSaved)
    }

    /// The live records are half of what a half holds, and a group's own work stays small.
    @Test func `no group waits for a whole compaction`() throws {
        let memory = Memory(2 << 20)
        let log = try memory.log()
        var longest = 0
        var copied = 0
        for round in 0..<12_000 {
            var group = RecordGroup(scope: "room-\(round % 40)")
            let key = RecordKey(1, UInt64(round % 2_000))
            group.changes = [RecordChange(key, [UInt8](repeating: 7, count: 180))]
            log.region.onStore = { (_: Int, bytes: [UInt8]) in copied += bytes.count }
            let isSaved = log.append(group)
            #expect(isSaved)
            longest = max(longest, copied)
            copied = 0
        }
        let (compactions, live) = (log.compactions, log.liveBytes)
        #expect(compactions > 1 && live > 300_000)
        #expect(longest < 64 << 10, "\(longest) bytes were written for one group")
    }

    @Test func `memory too short or foreign is refused`() {
        let memory = Memory(100)
        #expect(throws: Memory.TooShort.self) { _ = try memory.log() }
        #expect(Self.read([]) == .failure(.foreign))
        #expect(Self.read([UInt8](repeating: 0, count: 4_096)) == .failure(.foreign))
    }
}
