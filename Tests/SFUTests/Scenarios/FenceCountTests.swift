import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Packet counts of fences for revoked rights: each copy once, under its own right.
struct FenceCountTests {
    struct Step: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var commands: [WorkerCommand]
        /// Expected counts, with 10 packets to the viewer before, and 3 more after the first fence.
        var packets: [UInt64]
    }

    static let video = PublicationID(index: 1, generation: 1)
    static let close = WorkerCommand.gate(video, open: false)
    static let open = WorkerCommand.gate(video, open: true)
    static let unbind = WorkerCommand.bind(SlotID(index: 0, generation: 1), nil)

    static let steps = [
        Step(testDescription: "a gate", commands: [close], packets: [10, 0]),
        Step(testDescription: "a slot", commands: [unbind], packets: [10, 0]),
        Step(
            testDescription: "a gate, and the slot that it held",
            commands: [close, unbind],
            packets: [10, 0]
        ),
        Step(
            testDescription: "a slot, and the gate before it",
            commands: [unbind, close],
            packets: [10, 0]
        ),
        Step(
            testDescription: "a gate that opens again at once",
            commands: [close, open],
            packets: [10, 3]
        ),
        Step(testDescription: "nothing", commands: [], packets: [0, 13]),
    ]

    @Test(arguments: steps)
    func `a copy is counted once, with the right that it went out under`(_ step: Step) throws {
        var call = try ForwardingTests.call()
        for number in 0..<10 as Range<UInt16> {
            call.sendVideo(sequence: number, pictureID: number, isKeyframe: number == 0)
        }
        var packets: [UInt64] = []
        for command in step.commands { call.apply(command) }
        packets.append(fence(&call))
        for number in 10..<13 as Range<UInt16> {
            call.sendVideo(sequence: number, pictureID: number, isKeyframe: number == 10)
        }
        call.apply(Self.unbind)
        packets.append(fence(&call))
        #expect(packets == step.packets)
        #expect(packets.reduce(0, +) == UInt64(call.peers[1].received.count))
    }

    @Test func `retransmissions are not counted`() throws {
        var call = try ForwardingTests.call()
        for number in 0..<5 as Range<UInt16> {
            call.sendVideo(sequence: number, pictureID: number, isKeyframe: number == 0)
        }
        let first = try #require(call.numbers(at: 1).first)
        call.sendRTCP(from: 1) { output in
            let lost = [SequenceNumber(rawValue: first)]
            let media = SSRC(rawValue: 0xaaaa)
            GenericNACK.encode(
                sender: SSRC(rawValue: 1),
                media: media,
                lost: lost.span,
                into: &output
            )
        }
        #expect(call.peers[1].received.count == 6)
        call.apply(Self.close)
        #expect(fence(&call) == 5)
    }

    private func fence(_ call: inout Call) -> UInt64 {
        call.apply(.fence(epoch: 3))
        for case .fenced(3, _, let packets) in call.takeEvents() { return packets }
        Issue.record("no fence")
        return 0
    }
}
