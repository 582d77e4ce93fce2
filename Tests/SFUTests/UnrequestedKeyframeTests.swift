import RTP
import Testing

@testable import SFU

@Suite struct UnrequestedKeyframeTests {
    /// Receives a keyframe of 50,000 bytes, of an encoding of 400 kbit/s.
    ///
    /// Returns after how many milliseconds another one is requested, if a viewer wants it after 100
    /// ms.
    private static func wait(isWanted: Bool) -> Int64? {
        var requests = KeyframeRequests()
        let start = Instant(nanoseconds: 1_000_000_000)
        if isWanted {
            _ = requests.want(at: start, bitrate: 400_000)
            _ = requests.isDue(at: start)
        }
        var info = PacketInfo()
        info.arrival = start
        info.timestamp = 7
        info.flags.insert(.keyframeStart)
        requests.receive(info, bytes: 1_000)
        info.flags.remove(.keyframeStart)
        for _ in 0..<49 { requests.receive(info, bytes: 1_000) }
        let later = start.advanced(milliseconds: 100)
        _ = requests.want(at: later, bitrate: 400_000)
        return requests.deadline?.milliseconds(since: start)
    }

    /// libwebrtc answers a request for one encoding with keyframes of all, and ignores requests for
    /// 300 ms after it.
    @Test func `an unrequested keyframe does not delay the next request`() {
        #expect(Self.wait(isWanted: false) == 300)
        #expect(Self.wait(isWanted: true) == 960)
    }
}
