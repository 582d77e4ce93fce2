import LiveStream
import RTP
import Testing
import WorkerInterface

@Suite struct StreamWireFormatTests {
    static let frame = StreamFrame(
        track: 7,
        codec: .h264,
        isKeyframe: true,
        instant: Instant(nanoseconds: 1_234_567_890_123),
        configuration: [1, 2, 3],
        bytes: [9, 8, 7, 6]
    )

    static let messages: [StreamMessage] = {
        var plain = frame
        plain.configuration = nil
        plain.isKeyframe = false
        var early = frame
        early.configuration = []
        early.instant = Instant(nanoseconds: -5)
        let settings = StreamSettings(
            url: "rtmp://127.0.0.1/live/key",
            width: 1_280,
            height: 720,
            bitrate: 2_500_000,
            retrySeconds: 60,
            hasBeenUp: true
        )
        var trusting = settings
        trusting.authority = "/etc/ssl/own.pem"
        return [
            .begin(settings), .begin(trusting), .tiles([]), .tiles([1, 2, .max]), .frame(frame),
            .frame(plain),
            .frame(early), .leave(3), .forget(4), .end,
        ]
    }()

    @Test func `messages round-trip, however they are split`() {
        let stream = Self.messages.flatMap(StreamWireFormat.encoded)
        for size in [1, 2, 3, 7, 50, stream.count] {
            var input = StreamDeframer()
            var found: [StreamMessage] = []
            var start = 0
            while start < stream.count {
                let end = min(start + size, stream.count)
                input.append(stream[start..<end])
                start = end
                while let body = input.next() {
                    if let message = StreamWireFormat.message(body) { found.append(message) }
                }
            }
            #expect(found == Self.messages, "in pieces of \(size)")
        }
    }

    @Test func `reports round-trip`() {
        let reports: [StreamReport] = [
            .up, .down(cause: "connection-lost"), .ended(reason: "unreachable"),
        ]
        for report in reports {
            let body = Array(StreamWireFormat.encoded(report).dropFirst(4))
            #expect(StreamWireFormat.report(body) == report)
        }
    }

    @Test func `truncated and unknown messages are refused`() {
        let whole = Array(StreamWireFormat.encoded(.frame(Self.frame)).dropFirst(4))
        // After the header and the decoder configuration only the frame's data is left.
        let least = 1 + 4 + 1 + 1 + 8 + 4 + 3
        for count in 0..<least { #expect(StreamWireFormat.message(Array(whole[..<count])) == nil) }
        #expect(StreamWireFormat.message([99]) == nil)
        #expect(StreamWireFormat.message([3, 0, 0, 0, 1, 99, 0]) == nil)
        #expect(StreamWireFormat.report([]) == nil)
    }

    @Test func `an excessive length ends the input`() {
        var input = StreamDeframer()
        input.append([0xff, 0xff, 0xff, 0xff, 1])
        #expect(input.next() == nil)
        #expect(input.isBroken)
        input.append([0, 0, 0, 1, 6])
        #expect(input.next() == nil)
    }
}
