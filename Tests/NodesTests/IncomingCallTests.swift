import Contract
import JSON
import RTP
import Testing

@testable import Nodes

/// Answers that a node keeps for those who ask again, and numbers that tell it which it may forget.
@Suite struct IncomingCallTests {
    private func line(_ number: UInt64, bytes: Int = 1) -> [UInt8] {
        Array(repeating: UInt8(truncatingIfNeeded: number), count: bytes)
    }

    /// Takes and answers calls with these numbers.
    private func answered(_ numbers: [UInt64], bytes: Int = 1) -> IncomingCalls {
        var calls = IncomingCalls()
        for number in numbers {
            #expect(calls.receive(number, answered: 0, of: "life") == .execute)
            calls.answer(number, line(number, bytes: bytes), of: "life")
        }
        return calls
    }

    @Test func `a call that comes again gets its answer, until the caller has it`() {
        var calls = answered([3, 7, 20])
        #expect(calls.receive(7, answered: 3, of: "life") == .repeatAnswer(line(7)))
        #expect(calls.receive(21, answered: 20, of: "life") == .execute)
        #expect(calls.receive(21, answered: 20, of: "life") == .ignore)
        #expect(calls.count == 2)
        #expect(calls.receive(7, answered: 20, of: "life") == .forgotten)
        #expect(calls.receive(20, answered: 20, of: "life") == .repeatAnswer(line(20)))
        #expect(calls.receive(3, answered: 0, of: "another life") == .execute)
        #expect(calls.count == 1)
    }

    @Test func `the oldest answers go where there are too many bytes`() {
        let half = IncomingCalls.byteLimit / 2
        var calls = answered([1, 2, 3], bytes: half)
        #expect(calls.receive(1, answered: 0, of: "life") == .forgotten)
        #expect(calls.receive(2, answered: 0, of: "life") == .repeatAnswer(line(2, bytes: half)))
        #expect(calls.receive(3, answered: 0, of: "life") == .repeatAnswer(line(3, bytes: half)))
    }

    /// If each call looked at all that are kept, this would take minutes.
    @Test func `a call costs the same, however many answers are kept`() {
        var calls = IncomingCalls()
        #expect(calls.receive(1, answered: 0, of: "life") == .execute)
        for number in 2...50_000 as ClosedRange<UInt64> {
            guard calls.receive(number, answered: 1, of: "life") == .execute else {
                Issue.record("call \(number) is refused")
                return
            }
            calls.answer(number, line(number), of: "life")
        }
        #expect(calls.count == 50_000)
        #expect(calls.receive(50_001, answered: 50_001, of: "life") == .execute)
        #expect(calls.count == 1)
    }

    private func outgoing() -> OutgoingCall {
        let request = IPCRequest(id: .integer(1), method: "room.get", params: ["room": "r"])
        let call = PendingCall(request: request, line: [], origin: .here(1))
        return OutgoingCall(call: call, boot: "life", connection: 1, at: Instant(nanoseconds: 0))
    }

    /// Returns the number below which all calls are answered, as the message of a call has it.
    private func answered(_ number: UInt64, _ peer: inout Peer) -> UInt64? {
        guard case .call(_, let answered, _, _, _)? = peer.message(number)?.message else {
            return nil
        }
        return answered
    }

    @Test func `a call tells which answers have come`() {
        var peer = Peer()
        for number in [5, 6, 9] as [UInt64] { peer.add(outgoing(), number) }
        #expect(answered(9, &peer) == 5)
        peer.remove(6)
        #expect(answered(9, &peer) == 5)
        peer.remove(5)
        #expect(answered(9, &peer) == 9)
        peer.remove(9)
        #expect(answered(9, &peer) == nil)
        // A search that began at 10 would take for ever.
        peer.add(outgoing(), 1 << 60)
        #expect(answered(1 << 60, &peer) == 1 << 60)
        #expect(peer.message(1 << 60)?.isRepeat == true)
    }
}
