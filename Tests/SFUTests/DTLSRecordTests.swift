import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Records after the handshake: those of this side read by the other, and whatever else arrives.
@Suite("DTLS records")
struct DTLSRecordTests {
    /// Two ends with each other's keys.
    struct Pair: ~Copyable {
        var here: DTLSRecordLayer
        var there: DTLSRecordLayer

        init(keyLength: UInt8 = 16, next: UInt64 = 1) {
            var state = DTLSRecordState()
            state.keyLength = keyLength
            state.writeNext = next
            state.nonceOffset = 0xffff_ffff_ffff_fff0
            for index in 0..<72 { state.keys[index] = UInt8(index) }
            var mirrored = state
            let half = Int(keyLength) + 4
            for index in 0..<half {
                mirrored.keys[index] = state.keys[half + index]
                mirrored.keys[half + index] = state.keys[index]
            }
            here = Self.layer(&state)
            there = Self.layer(&mirrored)
        }

        static func layer(_ state: inout DTLSRecordState) -> DTLSRecordLayer {
            guard let layer = DTLSRecordLayer(taking: &state) else {
                preconditionFailure("the state is usable")
            }
            return layer
        }

        mutating func send(_ content: [UInt8]) -> [UInt8] { seal(content, by: &here) }

        mutating func read(_ record: [UInt8]) -> [UInt8]? {
            var type: DTLSRecordLayer.ContentType?
            let content = [UInt8](capacity: 2_000) { output in
                type = there.open(record.span, into: &output)
            }
            return type == .applicationData ? content : nil
        }
    }

    static func seal(_ content: [UInt8], by layer: inout DTLSRecordLayer) -> [UInt8] {
        [UInt8](capacity: 2_000) { output in
            _ = layer.seal(.applicationData, content.span, into: &output)
        }
    }

    /// AES-GCM of fixed keys, made by another implementation (`cryptography` 48.0.0 of Python).
    @Test func `a record has the bytes that RFC 5288 says`() {
        var pair = Pair(next: 5)
        #expect(pair.send(Array("hello".utf8)) == hex(Self.vector))
    }

    @Test(arguments: [16, 32] as [UInt8])
    func `each record is read once, in any order`(keyLength: UInt8) {
        var pair = Pair(keyLength: keyLength)
        var random = SeededRandom(seed: 1)
        var records: [[UInt8]] = []
        var contents: [[UInt8]] = []
        for count in [0, 1, 2, 40, 1_100] + Array(3...60) {
            contents.append(random.bytes(count))
            records.append(pair.send(contents[contents.count - 1]))
        }
        for index in records.indices.shuffled(using: &random) {
            let content = pair.read(records[index])
            #expect(content == contents[index])
        }
        for record in records { #expect(pair.read(record) == nil) }
    }

    @Test func `the window has 64 records`() {
        var pair = Pair()
        let records = (0..<200).map { pair.send([UInt8($0)]) }
        #expect(pair.read(records[100]) != nil)
        #expect(pair.read(records[36]) == nil)
        #expect(pair.read(records[37]) != nil)
        #expect(pair.read(records[37]) == nil)
        #expect(pair.read(records[99]) != nil)
        #expect(pair.read(records[101]) != nil)
        #expect(pair.read(records[37]) == nil)
        #expect(pair.read(records[38]) != nil)
        #expect(pair.read(records[199]) != nil)
        #expect(pair.read(records[135]) == nil)
        #expect(pair.read(records[136]) != nil)
    }

    @Test func `forged, cut and misplaced records are dropped, and cost nothing`() {
        var pair = Pair()
        let record = pair.send([1, 2, 3])
        for place in record.indices {
            for bit in 0..<8 as Range<UInt8> {
                var forged = record
                forged[place] ^= 1 << bit
                #expect(pair.read(forged) == nil, "byte \(place), bit \(bit)")
            }
        }
        for length in 0..<record.count { #expect(pair.read(Array(record[..<length])) == nil) }
        #expect(pair.read(record + [0]) == nil)
        // None of them moved the window.
        #expect(pair.read(record) == [1, 2, 3])
    }

    @Test func `numbers end before they repeat`() {
        var pair = Pair(next: DTLSRecordState.numberLimit - 1)
        #expect(!pair.send([1]).isEmpty)
        #expect(pair.send([1]).isEmpty)
    }

    @Test func `a record that does not fit is not made, and uses no number`() {
        var pair = Pair()
        let small = [UInt8](capacity: DTLSRecordLayer.overhead + 2) { output in
            _ = pair.here.seal(.applicationData, [1, 2, 3].span, into: &output)
        }
        #expect(small.isEmpty)
        #expect(Array(pair.send([1, 2, 3])[3..<11]) == [0, 1, 0, 0, 0, 0, 0, 1])
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `random bytes are no record, and random states no layer that traps`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var pair = Pair()
        for _ in 0..<300 {
            var noise = random.bytes(Int.random(in: 0..<200, using: &random))
            let head = hex("17 fefd 0001")
            if noise.count > 13, Bool.random(using: &random) {
                noise.replaceSubrange(0..<5, with: head)
                noise[11] = 0
                noise[12] = UInt8(noise.count - 13)
            }
            #expect(pair.read(noise) == nil)
        }
        for _ in 0..<100 {
            var state = DTLSRecordState()
            unsafe withUnsafeMutableBytes(of: &state) { bytes in
                for index in bytes.indices { unsafe bytes[index] = UInt8.random(using: &random) }
            }
            if Bool.random(using: &random) { state.keyLength = 32 }
            if Bool.random(using: &random) { state.writeNext >>= 16 }
            if Bool.random(using: &random) { state.readNewest >>= 16 }
            if Bool.random(using: &random) { state.flightLength >>= 2 }
            guard var layer = DTLSRecordLayer(taking: &state) else { continue }
            _ = Self.seal([1], by: &layer)
            _ = layer.flightToRepeat(at: Instant(nanoseconds: 0))
            let record = pair.send([1])
            let content = [UInt8](capacity: 100) { _ = layer.open(record.span, into: &$0) }
            #expect(content.isEmpty)
        }
    }

    static let vector =
        "17fefd0001000000000005001dfffffffffffffff5"
        + "6613db69710e1ef2f782edc78bb70ae6fe3386508f"
}

extension UInt8 {
    fileprivate static func random(using random: inout SeededRandom) -> UInt8 {
        UInt8.random(in: 0...255, using: &random)
    }
}
