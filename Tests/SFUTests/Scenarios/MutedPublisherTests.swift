import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Effects of a mute on the publisher's feedback, and of the unmute on its viewer's stream.
struct MutedPublisherTests {
    /// Makes two seconds of video behind a closed gate; the network loses one packet.
    private func mutedCall() throws -> Call {
        var call = try ForwardingTests.call()
        for step in 0..<20 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
            call.run(milliseconds: 20)
        }
        call.apply(.gate(PublicationID(index: 1, generation: 1), open: false))
        call.peers[0].reports = []
        for step in 20..<120 as Range<UInt16> {
            if step != 50 {
                call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 70)
            }
            if step % 10 == 0 { call.loseThePicture() }
            call.run(milliseconds: 20)
        }
        return call
    }

    @Test func `A0-6 a muted publisher is heard and reported to, and asked for nothing`() throws {
        let call = try mutedCall()
        #expect(call.numbers(at: 1).count == 20)
        #expect(call.nacks(at: 0) == [])
        #expect(call.keyframeRequests(at: 0) == 0)
        let seen = call.feedback(at: 0)
        #expect(seen.reports >= 1)
        // 99 of its 100 packets arrived: dropping them at the gate is not reported as loss.
        #expect(seen.lost == 1 && seen.highest >= 60)
        #expect(seen.arrivals >= 90)
    }

    @Test func `A0-6 the return costs one keyframe request, and viewers see no gap`() throws {
        var call = try mutedCall()
        let gate = PublicationID(index: 1, generation: 1)
        call.apply(.gate(gate, open: true))
        call.run(milliseconds: 200)
        #expect(call.keyframeRequests(at: 0) == 1)
        for step in 120..<140 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 122)
            call.run(milliseconds: 20)
        }
        #expect(call.keyframeRequests(at: 0) == 1)
        let numbers = call.numbers(at: 1)
        #expect(numbers.count == 20 + 18 && numbers.isContiguous)
        let timestamps = call.peers[1].received.map { $0.u32(4) }
        for (first, second) in zip(timestamps, timestamps.dropFirst()) {
            #expect(Int32(bitPattern: second &- first) > 0)
        }
        // The clock continued while nothing was sent: two seconds and a bit.
        let pause = Int32(bitPattern: timestamps[20] &- timestamps[19])
        #expect((180_000..<220_000).contains(pause))
    }
}

extension Call {
    fileprivate mutating func loseThePicture() {
        sendRTCP(from: 1) { output in
            let media = SSRC(rawValue: 0xaaaa)
            PictureLossIndication(sender: SSRC(rawValue: 1), media: media).encode(into: &output)
        }
    }
}
