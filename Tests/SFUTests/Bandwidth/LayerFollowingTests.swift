import Foundation
import Testing

@testable import SFU
@testable import WorkerInterface

/// Layer selection for a viewer of three encodings (150, 400 and 1,500 kbit/s) on several paths.
///
/// `SFUD_FIGURES=1` prints it.
struct LayerFollowingTests {
    private static let (top, middle, lowest) = (1_280, 640, 320)

    private func call(
        _ capacity: [(Double, Double)],
        seed: UInt64,
        until end: Double
    ) throws -> LayeredCall {
        var settings = LayeredCall.Settings()
        settings.capacity = capacity.map { ($0.0, $0.1 * 1e3) }
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: end)
        return call
    }

    private func tell(_ name: String, _ call: borrowing LayeredCall) {
        guard ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil else { return }
        let changes = call.changes.map { "\(($0.second * 100).rounded() / 100) s: \($0.width)" }
        let stands = call.stands(in: 0..<1_000).map { Int($0) }
        print("FIGURE following \(name): \(changes.joined(separator: ", ")); stands \(stands) ms")
    }

    /// A path's rate in kbit/s, and the width that is shown through it, in pixels.
    struct Path: CustomTestStringConvertible, Sendable {
        var rate: Double
        var width: Int

        var testDescription: String { "\(Int(rate)) kbit/s" }
    }

    static let paths = [
        Path(rate: 3_000, width: top), Path(rate: 600, width: middle),
        Path(rate: 200, width: lowest),
    ]

    @Test(arguments: paths, Scenarios.seeds)
    func `who joins sees the layer that fits within four seconds, and keeps it`(
        path: Path,
        seed: UInt64
    ) throws {
        let end = Scenarios.length(60, short: 10)
        let call = try call([(0, path.rate)], seed: seed, until: end)
        tell("\(Int(path.rate)) kbit/s", call)
        let seen = call.changes
        #expect(seen.last?.width == path.width)
        #expect((seen.last?.second ?? end) <= 4)
        // The warm picture first; then no other size, not even briefly.
        let first = path.width == Self.lowest ? [] : [Self.lowest]
        #expect(seen.map(\.width) == first + [path.width])
        #expect((seen.first?.second ?? end) <= 0.2)
    }

    @Test(arguments: Scenarios.seeds)
    func `layers follow a path down to 600 and 200 kbit a second, and back up`(
        seed: UInt64
    ) throws {
        // Times at which the path becomes narrow, narrower, and wide again.
        let (first, second, third) = Scenarios.isFull ? (10.0, 40.0, 60.0) : (6.0, 16.0, 22.0)
        let end = Scenarios.length(80, short: 32)
        let path: [(Double, Double)] = [(0, 3_000), (first, 600), (second, 200), (third, 3_000)]
        let call = try call(path, seed: seed, until: end)
        tell("3,000 to 600 to 200 to 3,000 kbit/s", call)
        let down = call.changes(in: first..<second)
        #expect(down.map(\.width) == [Self.middle])
        #expect((down.last?.second ?? second) <= first + 4)
        let further = call.changes(in: second..<third)
        #expect(further.map(\.width) == [Self.lowest])
        #expect((further.last?.second ?? third) <= second + 4)
        let up = call.changes(in: third..<end)
        #expect(up.last?.width == Self.top && up.count <= 2)
        #expect((up.last?.second ?? end) <= third + 8)
        // A keyframe takes time when the queue is full, and none when there is room.
        let downwards = call.stands(in: 0..<third).max() ?? 0
        #expect(downwards <= 1_000)
        let upwards = call.stands(in: third..<end).max() ?? 0
        #expect(upwards <= 200)
    }

    /// A publisher that behaves like Chromium.
    ///
    /// It pauses unwatched encodings. A resumed encoding begins at a low frame and bit rate and
    /// reaches its full rate in so many seconds.
    struct Ramp: CustomTestStringConvertible, Sendable {
        var seconds: Double

        var testDescription: String { "in \(seconds) s" }
    }

    static let ramps = Scenarios.isFull ? [Ramp(seconds: 1), Ramp(seconds: 3)] : [Ramp(seconds: 1)]

    @Test(arguments: ramps, Scenarios.seeds)
    func `a publisher that sends no more than is watched is followed as well`(
        ramp: Ramp,
        seed: UInt64
    ) throws {
        // Times at which the path becomes narrow, narrower, and wide again.
        let (down, further, up) = Scenarios.isFull ? (10.0, 40.0, 60.0) : (5.5, 10.0, 14.0)
        let end = up + 8 + 2 * ramp.seconds
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 3e6), (down, 600e3), (further, 200e3), (up, 3e6)]
        settings.obeyingWithRamp = ramp.seconds
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: end)
        tell("obeying, ramp \(ramp.seconds) s, wishes \(call.wishes)", call)
        let first = call.changes(in: 0..<down)
        // Besides the time to probe the path, the encoder needs time to reach its rate.
        #expect(first.last?.width == Self.top && (first.last?.second ?? down) <= 5 + ramp.seconds)
        let middle = call.changes(in: down..<further)
        #expect(middle.map(\.width) == [Self.middle])
        #expect((middle.last?.second ?? further) <= down + 4)
        let lowest = call.changes(in: further..<up)
        #expect(lowest.map(\.width) == [Self.lowest])
        #expect((lowest.last?.second ?? up) <= further + 4)
        let last = call.changes(in: up..<end)
        #expect(last.last?.width == Self.top && last.count <= 2)
        #expect((last.last?.second ?? end) <= up + 8 + ramp.seconds)
        // Unwatched encodings are paused within five seconds.
        let isOff = call.wishes.contains { (0...5).contains($0.second) && $0.mask == 4 }
        #expect(isOff || ramp.seconds > 1)
    }

    /// Without media only probes reveal new capacity, which takes seconds.
    @Test(.enabled(if: Scenarios.isFull), arguments: Scenarios.seeds)
    func `a layer paused for lack of bandwidth is requested when there is room`(
        seed: UInt64
    ) throws {
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 1.5e6), (5, 50e3), (25, 1.5e6)]
        settings.obeyingWithRamp = 1
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: 25)
        let holds = call.takeVideoHolds()
        #expect(holds == [.quality])
        #expect(call.wishes.last?.mask == 0)
        call.run(until: 40)
        tell("obeying, 50 to 1,500 kbit/s, wishes \(call.wishes)", call)
        let returned = call.takeVideoHolds()
        #expect(returned == [nil])
    }

    /// A still picture takes few bits, so the sent rate says little about the path's capacity.
    @Test(arguments: Scenarios.seeds)
    func `O-12 a low-rate picture becomes large as soon as it is requested`(
        seed: UInt64
    ) throws {
        var settings = LayeredCall.Settings()
        settings.isStill = true
        settings.rates = [30e3, 80e3, 400e3]
        settings.capacity = [(0, 10e6)]
        var call = try LayeredCall(settings, seed: seed)
        var times: [Double] = []
        for turn in 0..<(Scenarios.isFull ? 8 : 4) {
            let begin = call.second
            let isLarge = turn % 2 == 1
            call.prefer(isLarge ? .none : LayerCap(width: 320, height: 180))
            call.run(until: begin + 3)
            let width = isLarge ? Self.top : Self.lowest
            let first = call.viewer.frames.first {
                $0.time > Int64(begin * 1e9) && $0.width == width
            }
            times.append(try #require(first.map { Double($0.time) / 1e9 - begin }))
        }
        tell("wishes on 10,000 kbit/s: \(times.map { Int($0 * 1_000) }) ms", call)
        // The path has to prove its capacity first; meanwhile the middle encoding is shown.
        #expect(times[1] <= 0.5)
        times.remove(at: 1)
        #expect((times.max() ?? 3) <= 0.2)
    }

    @Test(arguments: Scenarios.seeds)
    func `O-9 below the lowest layer the video goes off, the sound stays, and all comes back`(
        seed: UInt64
    ) throws {
        // Times at which the path becomes narrow and wide again.
        let (first, second) = Scenarios.isFull ? (10.0, 40.0) : (5.0, 22.0)
        var call = try call([(0, 1_500), (first, 60), (second, 1_500)], seed: seed, until: second)
        let holds = call.takeVideoHolds()
        #expect(holds == [.quality])
        let silent = call.silentShare(in: first + 10..<second)
        #expect(silent <= 0.02)
        call.run(until: second + 10)
        tell("1,500 to 60 to 1,500 kbit/s, \(Int(silent * 1_000)) permille silent", call)
        let returned = call.takeVideoHolds()
        #expect(returned == [nil])
        let shown = call.viewer.frames.first { Double($0.time) / 1e9 > second }
        let time = try #require(shown?.time)
        #expect(Double(time) / 1e9 <= second + 8)
    }

    /// On a path that audio alone fills, its queue makes the estimate even lower.
    @Test(arguments: Scenarios.seeds)
    func `O-9 video is soon back on a path that sound alone had filled`(seed: UInt64) throws {
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 1.5e6), (5, 48e3), (25, 1.5e6)]
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: Scenarios.length(40, short: 31))
        tell("1,500 to 48 to 1,500 kbit/s", call)
        let first = call.viewer.frames.first { $0.time > 25_000_000_000 }
        #expect((first?.time ?? .max) <= 30_000_000_000)
    }

    /// The microphone goes on, so the publisher has not gone.
    @Test(arguments: Scenarios.seeds)
    func `O-8 video that stops arriving is interrupted after three seconds, until it returns`(
        seed: UInt64
    ) throws {
        var call = try call([(0, 3_000)], seed: seed, until: 5)
        _ = call.takeVideoHolds()
        call.faults.plant(.encoderStopped, in: 5..<12, seed: seed)
        call.run(until: 8)
        let early = call.takeVideoHolds()
        #expect(early == [])
        call.run(until: 12)
        let holds = call.takeVideoHolds()
        #expect(holds == [.interrupted])
        call.run(until: 15)
        let returned = call.takeVideoHolds()
        #expect(returned == [nil])
        let shown = call.viewer.frames.last?.time ?? 0
        #expect(Double(shown) / 1e9 > 14)
    }

    @Test(arguments: Scenarios.seeds)
    func `R-1 O-8 video of which each layer exceeds the role's cap is off for that reason`(
        seed: UInt64
    ) throws {
        var call = try call([(0, 3_000)], seed: seed, until: 5)
        _ = call.takeVideoHolds()
        call.prefer(.none, roleCap: LayerCap(width: 160, height: 90))
        call.run(until: 6)
        let holds = call.takeVideoHolds()
        #expect(holds == [.role])
        call.prefer(.none)
        call.run(until: 7)
        let returned = call.takeVideoHolds()
        #expect(returned == [nil])
    }
}
