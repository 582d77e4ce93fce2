import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import SFU

/// Memory layout of a viewer's hot state, and the order in which viewers are served.
struct EgressTests {
    @Test func `a slot has two cache lines and its destination one`() {
        #expect(MemoryLayout<Slot>.stride == 128)
        #expect(MemoryLayout<Destination>.stride == 64)
        #expect(MemoryLayout<SlotRecord>.stride <= 256)
        // Every packet of a stream touches only the first cache line.
        #expect(MemoryLayout<RTPRewriter>.size <= 56)
    }

    @Test(arguments: ["", "0", "video-m", "video-ma", "a-mid-of-sixteen", "a-mid-of-seventeen"])
    func `a MID of any length goes out`(mid: String) throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        var slot = Media.slot(0)
        slot.mid = mid
        call.join(slots: [slot])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let bytes = try #require(call.peers[1].received.first)
        let packet = try Packet(bytes.span)
        var found: [UInt8] = []
        var elements = packet.extensions
        while let element = elements.next() {
            if element.id == 9 { found = Array(bytes[element.offset...].prefix(element.length)) }
        }
        #expect(found == Array(mid.utf8))
    }

    /// Makes two publishers, and five viewers of their audio and two videos.
    private static func meeting() throws -> Call {
        var call = try Call()
        call.join(publications: [Media.audio(0), Media.video(1)])
        call.join(publications: [Media.video(2)])
        for viewer in 0..<5 as Range<UInt32> {
            let first = 10 * (viewer + 1)
            call.join(slots: [
                Media.slot(first, ssrc: first << 8),
                Media.slot(first + 1, ssrc: (first + 1) << 8),
                Media.slot(first + 2, kind: .audio, ssrc: (first + 2) << 8),
            ])
        }
        for index in call.peers.indices { call.connect(index) }
        // In another order than that of their slots.
        for viewer in [3, 0, 4, 1, 2] as [UInt32] {
            let first = 10 * (viewer + 1)
            call.bind(slot: first, publication: 1)
            call.bind(slot: first + 1, publication: 2)
            call.bind(slot: first + 2, publication: 0)
        }
        return call
    }

    /// Makes a batch of frames of both videos and of audio, the videos first.
    private static func batch(_ call: inout Call, packets: Int) -> [(peer: Int, bytes: [UInt8])] {
        let sizes = Array(repeating: 300, count: packets)
        let first = call.frame(sizes: sizes).map { (peer: 0, bytes: $0) }
        call.transportSequence = 0
        let second = call.frame(ssrc: 0x7777, sizes: sizes).map { (peer: 1, bytes: $0) }
        let audio = Media.packet(
            payloadType: 111,
            sequence: 1,
            timestamp: 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: Array(repeating: 7, count: 80)
        )
        return zip(second, first).flatMap { [$0, $1] } + [(peer: 0, bytes: audio)]
    }

    @Test(arguments: [1, 3, 60])
    func `what goes to one viewer lies together, audio first`(packets: Int) throws {
        var call = try Self.meeting()
        let wire = Wire(&call)
        call.sendTogether(Self.batch(&call, packets: packets))
        let order = wire.datagrams.map { $0.ssrc >> 8 }
        var expected: [UInt32] = []
        for viewer in 1...5 as ClosedRange<UInt32> {
            let first = 10 * viewer
            expected.append(first + 2)
            expected += Array(repeating: first + 1, count: packets)
            expected += Array(repeating: first, count: packets)
        }
        // 60 packets of each fill the output several times; the order of viewers does not matter.
        #expect(order.sorted() == expected.sorted())
        let viewers: [UInt32] = order.map { $0 / 10 }
        let turns: [Int] = viewers.indices.filter { index in
            index == 0 || viewers[index] != viewers[index - 1]
        }
        #expect(turns.count == 5)
        for turn in turns {
            let viewer = viewers[turn]
            let own = order[turn...].prefix(2 * packets + 1)
            #expect(Array(own) == expected.filter { $0 / 10 == viewer })
        }
        for viewer in 1...5 as ClosedRange<UInt32> {
            let numbers = call.numbers(at: Int(viewer) + 1, ssrc: viewer * 10 << 8)
            #expect(numbers.count == packets)
            #expect(numbers.isContiguous)
        }
        #expect(call.statistics().isBalanced)
    }

    @Test func `a key is forgotten with its session`() throws {
        var call = try Self.meeting()
        var agree = [call.destinationsAgree]
        call.silent = [3]
        call.run(milliseconds: 31_000)
        agree.append(call.destinationsAgree)
        let isForgotten = call.core.transports.destinations[3].key == nil
        #expect(isForgotten)
        call.sendTogether(Self.batch(&call, packets: 3))
        call.apply(.close(call.peers[4].id))
        agree.append(call.destinationsAgree)
        #expect(agree == [true, true, true])
        call.sendTogether(Self.batch(&call, packets: 3))
    }

    /// Checks that publications are visited in the order of their slots, whatever came and went.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a sorted list stays sorted`(seed: UInt64) {
        var noise = SeededRandom(seed: seed)
        var list = UncountedArray<Int32>()
        var expected: Set<Int32> = []
        for _ in 0..<200 {
            let element = Int32(noise.next() % 40)
            if expected.insert(element).inserted {
                list.insert(sorted: element)
            } else if noise.next() % 2 == 0 {
                expected.remove(element)
                list.remove(sorted: element)
            }
            list.remove(sorted: 99)
            let found = (0..<list.count).map { list[$0] }
            #expect(found == expected.sorted())
        }
    }

    @Test func `a trail keeps the newest`() {
        var trail = RecentRing<Int>(capacity: 8)
        let empty = trail[age: 1]
        #expect(empty == nil)
        for number in 1...100 {
            trail.append(number)
            for age in 0...9 {
                let found = trail[age: age]
                let isKept = age >= 1 && age <= min(number, 8)
                let expected: Int? = isKept ? number - age + 1 : nil
                #expect(found == expected)
            }
        }
    }
}
