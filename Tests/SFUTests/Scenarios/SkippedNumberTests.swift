import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// A publisher that skips numbers, between packets that are left out or with each one: its viewers
/// can read what they are sent, and so can those who are shown somebody else on the m-line later.
struct SkippedNumberTests {
    /// Sender of peer 0's stream of one kind, with its numbers and their wraps.
    struct Sender {
        var kind: MediaKind
        var number: UInt64 = 100
        var pictures: UInt16 = 0

        mutating func send(in call: inout Call, isPadding: Bool = false, isKeyframe: Bool = true) {
            pictures &+= 1
            let isVideo = kind.isVideo
            let media =
                isVideo
                ? Media.vp8Payload(pictureID: pictures & 0x7fff, isKeyframe: isKeyframe)
                : [0xfc, 1, 2, 3]
            var packet = Media.packet(
                payloadType: isVideo ? 96 : 111,
                sequence: UInt16(truncatingIfNeeded: number),
                timestamp: UInt32(pictures) &* (isVideo ? 3_000 : 960),
                ssrc: isVideo ? 0x2222 : 0x1111,
                marker: isVideo,
                elements: [(4, Array((isVideo ? "1" : "0").utf8))],
                payload: isPadding ? [0, 0, 0, 4] : media
            )
            if isPadding { packet[0] |= 0x20 }
            call.send(packet, from: 0, rollover: number >> 16)
            call.now = call.now.advanced(milliseconds: 20)
        }
    }

    static func ssrc(of kind: MediaKind) -> UInt32 { kind.isVideo ? 0xaaaa : 0xbbbb }

    /// Adds up how far the numbers of what peer 1 received have gone.
    static func advance(of numbers: [UInt16]) -> Int {
        zip(numbers, numbers.dropFirst())
            .reduce(0) { sum, pair in sum + Int(Int16(bitPattern: pair.1 &- pair.0)) }
    }

    @Test(arguments: [MediaKind.video, .audio])
    func `padding far apart does not make the next packet unreadable`(kind: MediaKind) throws {
        var call = try ForwardingTests.call()
        var sender = Sender(kind: kind)
        for _ in 0..<4 {
            sender.send(in: &call)
            for _ in 0..<12 {
                sender.number += 3_000
                sender.send(in: &call, isPadding: true)
            }
            sender.number += 1
        }
        for _ in 0..<10 {
            sender.send(in: &call)
            sender.number += 1
        }
        let (numbers, undecryptable) = (
            call.numbers(at: 1, ssrc: Self.ssrc(of: kind)), call.peers[1].undecryptable
        )
        #expect(undecryptable == 0)
        #expect(numbers.count == 14)
        #expect(numbers.isContiguous)
        #expect(call.statistics().isBalanced)
    }

    @Test func `who comes to the m-line after such a publisher is seen`() throws {
        var call = try ForwardingTests.call()
        call.join(publications: [Media.video(2, ssrc: 0x3333)])
        call.connect(2)
        var sender = Sender(kind: .video)
        for _ in 0..<3 {
            sender.send(in: &call)
            for _ in 0..<12 {
                sender.number += 3_000
                sender.send(in: &call, isPadding: true)
            }
            sender.number += 1
        }
        call.bind(slot: 0, publication: 2)
        call.peers[1].received = []
        for step in 0..<30 as Range<UInt16> {
            call.sendVideo(
                from: 2,
                ssrc: 0x3333,
                sequence: step,
                pictureID: step,
                isKeyframe: step == 0
            )
        }
        let (received, undecryptable) = (call.peers[1].received.count, call.peers[1].undecryptable)
        #expect(received == 30)
        #expect(undecryptable == 0)
    }

    /// The viewer's own losses would do the rest: who misses 2^15 numbers cannot follow any more.
    @Test(arguments: [MediaKind.video, .audio])
    func `numbers run no faster than twice the packets`(kind: MediaKind) throws {
        var call = try ForwardingTests.call()
        var sender = Sender(kind: kind)
        for _ in 0..<200 {
            sender.send(in: &call)
            sender.number += 2_900
        }
        let numbers = call.numbers(at: 1, ssrc: Self.ssrc(of: kind))
        #expect(numbers.count == 200)
        let most = Int(GapAllowance.maximum) + 2 * numbers.count
        #expect(Self.advance(of: numbers) <= most)
        #expect(call.peers[1].undecryptable == 0)
    }

    @Test func `a late packet from between such padding does not jump ahead`() throws {
        var call = try ForwardingTests.call()
        var sender = Sender(kind: .audio)
        sender.send(in: &call)
        for _ in 0..<12 {
            sender.number += 3_000
            sender.send(in: &call, isPadding: true)
        }
        let newest = sender.number
        for isPadding in [true, false] {
            sender.number = newest - (isPadding ? 20 : 10)
            sender.send(in: &call, isPadding: isPadding)
        }
        sender.number = newest + 1
        for _ in 0..<5 {
            sender.send(in: &call)
            sender.number += 1
        }
        let numbers = call.numbers(at: 1, ssrc: 0xbbbb)
        #expect(call.peers[1].undecryptable == 0)
        #expect(numbers.count >= 6)
        #expect(Self.advance(of: numbers) < 100)
    }

    /// Losses that are repaired late, or never: viewers see them as gaps.
    static let lines: [(name: String, order: [UInt64], step: UInt64)] = [
        ("nothing lost", [0], 1), ("each second one late", [1, 0], 2),
        ("two of five lost", [0, 2, 4], 5), ("four late of five", [4, 0, 1, 2, 3], 5),
    ]

    @Test(arguments: lines.indices)
    func `losses that a line may have stay gaps, however long it goes on`(row: Int) throws {
        var call = try ForwardingTests.call()
        var sender = Sender(kind: .audio)
        let (name, order, step) = Self.lines[row]
        sender.number = 99
        sender.send(in: &call)
        var sent = 1
        for round in 0..<4_000 as Range<UInt64> {
            for place in order {
                sender.number = 100 + round * step + place
                sender.send(in: &call)
                sent += 1
            }
        }
        let last = 100 + 3_999 * step + (order.max() ?? 0)
        let numbers = call.numbers(at: 1, ssrc: 0xbbbb)
        #expect(numbers.count == sent, "\(name)")
        // The newest number is where the publisher's is, counted from its first one.
        let reached = numbers.suffix(order.count).map { $0 &- numbers[0] }
        #expect(reached.contains(UInt16(truncatingIfNeeded: last - 99)), "\(name)")
    }

    /// Losses that are never repaired, as the publisher takes no NACKs.
    @Test func `a keyframe is asked for where a gap is too large`() throws {
        var video = Media.video(1)
        video.formats[0].feedback = [.pictureLoss, .transportWide]
        var call = try Call()
        call.join(publications: [video])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        var sender = Sender(kind: .video)
        sender.send(in: &call)
        let asked = call.keyframeRequests(at: 0)
        var steps = 0
        while call.keyframeRequests(at: 0) == asked, steps < 30 {
            sender.number += 200
            sender.send(in: &call, isKeyframe: false)
            call.run(milliseconds: 20)
            steps += 1
        }
        #expect(steps == 16)
        let before = call.numbers(at: 1)
        sender.number += 1
        sender.send(in: &call)
        for _ in 0..<5 {
            sender.number += 1
            sender.send(in: &call, isKeyframe: false)
        }
        let after = Array(call.numbers(at: 1).dropFirst(before.count - 1))
        #expect(after.count == 7)
        #expect(after.isContiguous)
        #expect(call.peers[1].undecryptable == 0)
    }

    /// A viewer of the lowest of many layers, whose publisher's line loses three packets of ten.
    @Test func `what is left out pays for what is lost among it`() throws {
        var call = try ForwardingTests.call()
        var sender = Sender(kind: .audio)
        sender.send(in: &call)
        for round in 0..<2_000 {
            for place in 0..<10 {
                sender.number += 1
                if [2, 5, 7].contains(place) { continue }
                sender.send(in: &call, isPadding: place != 9)
            }
            guard round % 100 == 99 else { continue }
            let numbers = call.numbers(at: 1, ssrc: 0xbbbb)
            #expect(Self.advance(of: numbers) == 4 * (round + 1), "round \(round)")
        }
    }

    typealias Step = (name: String, passed: [(from: Int64, to: Int64)], to: Int64, isAllowed: Bool)

    static let steps: [Step] = [
        ("the next one", [], 11, true), ("all that may be left out", [], 3_011, true),
        ("one more", [], 3_012, false), ("back", [], 5, true),
        ("after that one for the packet sent", [(11, 3_011)], 3_013, true),
        ("and no second one", [(11, 3_011)], 3_014, false),
    ]

    @Test(arguments: steps.indices)
    func `an allowance is a burst, and what was used`(row: Int) {
        let step = Self.steps[row]
        var allowance = GapAllowance()
        for range in step.passed { allowance.passOver(range.from..<range.to) }
        let highest = step.passed.last?.to ?? 10
        #expect(allowance.allowsStep(from: highest, to: step.to) == step.isAllowed, "\(step.name)")
        // Ten packets later ten more may be left out, and not another one.
        guard let last = step.passed.last else { return }
        #expect(allowance.allowsStep(from: last.to + 10, to: last.to + 22))
        #expect(!allowance.allowsStep(from: last.to + 10, to: last.to + 23))
        allowance.fill()
        #expect(allowance.allowsStep(from: last.to + 10, to: last.to + 23))
    }
}
