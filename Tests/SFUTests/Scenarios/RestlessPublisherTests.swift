import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// A publisher whose packets each show another resolution: selecting the layers of all its viewers
/// anew for each of them would cost everybody else.
struct RestlessPublisherTests {
    @Test func `layers are selected a few times at once, and then with the next review`() throws {
        var call = try ForwardingTests.call()
        func offered() -> Int { call.core.receiver.publications[1].options[0].width }
        for step in 0..<200 as Range<UInt16> {
            call.sendVideo(
                sequence: step,
                pictureID: step,
                isKeyframe: true,
                width: 320 + 2 * step
            )
            let isAtOnce = step < UInt16(RefreshLimit.burst)
            #expect((offered() == 320 + 2 * Int(step)) == isAtOnce, "packet \(step)")
        }
        call.run(milliseconds: 110)
        #expect(offered() == 320 + 2 * 199)
        let received = call.numbers(at: 1).count
        #expect(received == 200)
    }

    @Test func `a burst comes back with time, one after the other`() {
        var limit = RefreshLimit()
        var now = Instant(nanoseconds: 0)
        func count(_ tries: Int) -> Int {
            (0..<tries).filter { _ in limit.mayRefresh(at: now) }.count
        }
        #expect(count(40) == 16)
        let isPending = [limit.takePending(), limit.takePending()]
        #expect(isPending == [true, false])
        now = now.advanced(milliseconds: 99)
        #expect(count(1) == 0)
        now = now.advanced(milliseconds: 1)
        #expect(count(5) == 1)
        now = now.advanced(milliseconds: 300)
        #expect(count(9) == 3)
        now = now.advanced(milliseconds: 60_000)
        #expect(count(40) == 16)
    }
}
