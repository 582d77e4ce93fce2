import Foundation
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Hops that freezes are attributed to, in whole calls with planted faults.
struct FreezeHopTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var fault: PlantedFault
        var hop: FreezeHop
        /// Bounds of the fault's length in seconds.
        var seconds: ClosedRange<Double>
        var testDescription: String { fault.rawValue }
    }

    static let rows: [Row] = [
        Row(fault: .uplinkDead, hop: .publisherUplink, seconds: 0.4...2),
        Row(fault: .uplinkLoss, hop: .publisherUplink, seconds: 0.5...2),
        Row(fault: .uplinkHeld, hop: .publisherUplink, seconds: 0.4...1.5),
        Row(fault: .encoderStopped, hop: .publisherEncoder, seconds: 0.4...2),
        Row(fault: .publisherPaused, hop: .publisherEncoder, seconds: 0.4...2),
        Row(fault: .keyframeRefused, hop: .publisherEncoder, seconds: 3...5),
        Row(fault: .stall, hop: .sfu, seconds: 0.4...0.9),
        Row(fault: .stale, hop: .sfu, seconds: 0.4...1.5),
        Row(fault: .overload, hop: .sfu, seconds: 1...3),
        Row(fault: .downlinkDead, hop: .viewerDownlink, seconds: 0.4...2),
        Row(fault: .downlinkLoss, hop: .viewerDownlink, seconds: 0.8...2),
        Row(fault: .downlinkNarrow, hop: .viewerDownlink, seconds: 2...4),
        Row(fault: .decoderBroken, hop: .viewerDecoder, seconds: 1...3),
    ]

    /// Small pictures, so that many calls take little time.
    private static let settings: LayeredCall.Settings = {
        var settings = LayeredCall.Settings()
        settings.rates = [60e3, 150e3, 400e3]
        settings.head = 1.5
        return settings
    }()

    /// Calls of each row; `SFUD_FREEZES` asks for more.
    private static let seeds: ClosedRange<UInt64> = {
        let told = ProcessInfo.processInfo.environment["SFUD_FREEZES"].flatMap { UInt64($0) }
        return 1...max(told ?? Extent.count(2, short: 1), 1)
    }()

    /// Returns the account of a call, and the viewer's own freezes in seconds of the call.
    private func play(
        _ row: Row,
        seed: UInt64
    ) throws -> (account: FreezeAccount, real: [Range<Double>], planted: Range<Double>) {
        var random = SeededRandom(seed: seed &* 77)
        let spread = row.seconds.upperBound - row.seconds.lowerBound
        let length = row.seconds.lowerBound + random.unit() * spread
        let begin = 2 + random.unit() * 2
        let planted = begin..<begin + length
        var settings = Self.settings
        settings.delayMilliseconds = 10 + random.unit() * 50
        if row.fault == .downlinkNarrow {
            settings.capacity = [(0, 3e6), (begin, 30e3), (planted.upperBound, 3e6)]
        }
        var call = try LayeredCall(settings, seed: seed)
        call.faults.plant(row.fault, in: planted, seed: seed)
        if row.fault == .keyframeRefused {
            call.faults.plant(.uplinkDead, in: begin..<begin + 0.3, seed: seed)
        }
        if row.fault == .overload {
            call.run(until: begin)
            call.cut(.off)
            call.run(until: planted.upperBound)
            call.cut(.none)
        }
        call.run(until: planted.upperBound + 2.5)
        let found = call.freezes
        let account = try #require(found)
        return (account, call.realFreezes(since: begin - 0.5), planted)
    }

    @Test(arguments: rows)
    func `a planted fault is attributed to its hop`(_ row: Row) throws {
        var wrong: [String] = []
        var count = 0
        for seed in Self.seeds {
            let (account, real, planted) = try play(row, seed: seed)
            guard !real.isEmpty else { continue }
            count += 1
            let longest = account.recent.max { $0.nanoseconds < $1.nanoseconds }
            if longest?.reason.hop == row.hop { continue }
            wrong.append("seed \(seed), \(planted): \(real) \(account.recent)")
        }
        #expect(count >= max(1, Self.seeds.count / 2))
        #expect(wrong.count * 20 <= count, "\(wrong.joined(separator: "\n"))")
    }

    @Test(arguments: 1...(Scenarios.isFull ? 5 : 2) as ClosedRange<UInt64>)
    func `a quiet call has no freeze`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var settings = Self.settings
        settings.delayMilliseconds = 5 + random.unit() * 45
        settings.jitterMilliseconds = random.unit() * 10
        settings.loss = seed % 2 == 0 ? 0.01 : 0
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: Scenarios.length(30, short: 15))
        let found = call.freezes
        let account = try #require(found)
        #expect(account.recent.isEmpty && account.totals == FreezeTotals(), "\(account.recent)")
    }

    @Test func `a freeze that lasts to the end counts, for the viewer and for the worker`() throws {
        var call = try LayeredCall(Self.settings, seed: 1)
        call.faults.plant(.downlinkDead, in: 2..<10, seed: 1)
        call.run(until: 4)
        let account = call.freezes
        let ongoing = try #require(account?.recent.last)
        #expect(!ongoing.hasEnded && ongoing.reason == .unacknowledged)
        #expect(account?.totals == FreezeTotals())
        call.call.apply(.close(call.call.peers[1].id))
        let qualities = call.call.takeEvents().compactMap { event in
            if case .closed(_, let quality) = event { quality } else { nil }
        }
        let totals = try #require(qualities.first?.freezes)
        #expect(totals.all.count == 1 && totals[.viewerDownlink].count == 1)
        #expect((1.7...2.1).contains(totals[.viewerDownlink].seconds))
        let worker = call.call.statistics()
        #expect(worker.freezes == totals)
    }
}

extension LayeredCall {
    /// Account of the viewer's freezes.
    var freezes: FreezeAccount? {
        call.core.explain(SlotID(index: 0, generation: 1), at: call.now)?.freezes
    }

    /// Cuts the viewer's video as an overloaded worker does.
    mutating func cut(_ reduction: VideoReduction) {
        call.core.allocator.shares[SlotIndex(0)].value.cut = reduction
        call.core.allocator.chooseLayer(
            of: SlotIndex(0),
            at: call.now,
            &call.core.transports,
            &call.core.receiver,
            &call.core.forwarder
        )
    }

    /// Gaps between the frames that the viewer has shown, beyond WebRTC's limit for 30 frames a
    /// second, in seconds of the call.
    func realFreezes(since begin: Double) -> [Range<Double>] {
        let times = viewer.frames.map { Double($0.time) / 1e9 } + [second]
        return zip(times, times.dropFirst()).compactMap { before, after in
            before >= begin && after - before > 0.184 ? before..<after : nil
        }
    }
}
