import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Calls whose media waited in the socket's queue while the thread was stalled.
struct StaleMediaTests {
    /// Makes a second of audio and video, followed by `stale` packets of each that waited too long.
    private func call(stale: UInt16, losing lost: UInt16? = nil) throws -> Call {
        var call = try ForwardingTests.call()
        for step in 0..<50 as Range<UInt16> where step != lost {
            call.send(step, isKeyframe: step == 0)
            call.run(milliseconds: 20)
        }
        call.peers[0].reports = []
        call.now = call.now.advanced(milliseconds: Int64(stale) * 20)
        call.staleMedia = .everything
        for step in 50..<50 + stale { call.send(step, isKeyframe: step == 60) }
        call.staleMedia = .nothing
        return call
    }

    @Test func `I9 stale media is dropped and counted`() throws {
        var call = try call(stale: 150)
        #expect(call.numbers(at: 1).count == 50)
        #expect(call.numbers(at: 1, ssrc: 0xbbbb).count == 50)
        let statistics = call.statistics()
        #expect(statistics.drops[DropReason.stale.index] == 300)
        #expect(statistics.isBalanced)
        #expect(call.nacks(at: 0) == [])
    }

    @Test func `I9 sound goes on at once, and the picture with a keyframe, without a gap`() throws {
        var call = try call(stale: 150)
        call.send(200, isKeyframe: false)
        call.run(milliseconds: 20)
        #expect(call.keyframeRequests(at: 0) == 1)
        #expect(call.numbers(at: 1).count == 50, "it refers to what was left out")
        #expect(call.numbers(at: 1, ssrc: 0xbbbb).count == 51)
        for step in 201..<220 as Range<UInt16> {
            call.send(step, isKeyframe: step == 203)
            call.run(milliseconds: 20)
        }
        #expect(call.keyframeRequests(at: 0) == 1 && call.nacks(at: 0) == [])
        let video = call.numbers(at: 1)
        let audio = call.numbers(at: 1, ssrc: 0xbbbb)
        #expect(video.count == 50 + 17 && video.isContiguous)
        #expect(audio.count == 50 + 20 && audio.isContiguous)
        // The clock continued meanwhile.
        let times = call.peers[1].received.filter { $0.u32(8) == 0xbbbb }.map { $0.u32(4) }
        #expect((140_000..<160_000).contains(Int32(bitPattern: times[50] &- times[49])))
    }

    @Test func `I9 only losses after the stall are requested again`() throws {
        var call = try call(stale: 50, losing: 48)
        for step in 100..<120 as Range<UInt16> where step != 110 {
            call.send(step, isKeyframe: step == 100)
            call.run(milliseconds: 20)
        }
        #expect(Set(call.nacks(at: 0)) == [110])
    }

    @Test func `I9 reports count stale media as received`() throws {
        var call = try call(stale: 50)
        call.run(milliseconds: 3_000)
        let seen = call.feedback(at: 0)
        #expect(seen.reports >= 1 && seen.lost == 0 && seen.highest == 99)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var staleMedia: StaleMedia
        var viewers: Int
        /// Whether the stale packets are forwarded.
        var audio: Bool
        var video: Bool
    }

    static let rows: [Row] = [
        Row(
            testDescription: "no stall: all is forwarded",
            staleMedia: .nothing,
            viewers: 17,
            audio: true,
            video: true
        ),
        Row(
            testDescription: "video to 17 viewers is dropped first",
            staleMedia: .largeAudienceVideo,
            viewers: 17,
            audio: true,
            video: false
        ),
        Row(
            testDescription: "video to 16 viewers is kept longer",
            staleMedia: .largeAudienceVideo,
            viewers: 16,
            audio: true,
            video: true
        ),
        Row(
            testDescription: "all video is dropped next",
            staleMedia: .video,
            viewers: 16,
            audio: true,
            video: false
        ),
        Row(
            testDescription: "sound is dropped last",
            staleMedia: .everything,
            viewers: 16,
            audio: false,
            video: false
        ),
    ]

    @Test(arguments: rows)
    func `L9 a queue that is too long costs video before sound, and crowds first`(row: Row) throws {
        var call = try ForwardingTests.call()
        for viewer in 2..<row.viewers + 1 {
            call.join(slots: [Media.slot(UInt32(2 * viewer))])
            call.connect(viewer)
            call.bind(slot: UInt32(2 * viewer), publication: 1)
        }
        call.send(0, isKeyframe: true)
        call.staleMedia = row.staleMedia
        for step in 1..<5 as Range<UInt16> { call.send(step, isKeyframe: false) }
        #expect(call.numbers(at: 1).count == (row.video ? 5 : 1))
        #expect(call.numbers(at: 1, ssrc: 0xbbbb).count == (row.audio ? 5 : 1))
        let left = (row.video ? 0 : 4) + (row.audio ? 0 : 4)
        #expect(call.statistics().drops[DropReason.stale.index] == UInt64(left))
    }
}

extension Call {
    /// Sends 20 ms of audio and a picture.
    fileprivate mutating func send(_ step: UInt16, isKeyframe: Bool) {
        let audio = Media.packet(
            payloadType: 111,
            sequence: step,
            timestamp: UInt32(step) * 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: 80)
        )
        send(audio, from: 0)
        sendVideo(sequence: step, pictureID: step, isKeyframe: isKeyframe)
    }
}
