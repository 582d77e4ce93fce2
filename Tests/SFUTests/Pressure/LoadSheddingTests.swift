import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Layers that a viewer of three encodings gets while its worker is overloaded.
struct LoadSheddingTests {
    private static let (top, lowest) = (1_280, 320)

    /// Advances the clock with the thread at a given load.
    private func press(
        _ call: inout LayeredCall,
        seconds: Double,
        busy: Double,
        lag: (Int) -> Double
    ) -> [WorkerOverload] {
        let end = call.second + seconds
        let known = call.pressures.count
        var step = 0
        while call.second < end {
            call.call.core.noteLoad(
                LoadSample(busy: busy, leastLagMilliseconds: lag(step), backlog: 0),
                at: call.call.now
            )
            step += 1
            call.run(until: call.second + 0.25)
        }
        return Array(call.pressures.dropFirst(known))
    }

    private func hold(_ call: borrowing LayeredCall) -> VideoHold? {
        call.call.core.allocator.shares[0].value.hold
    }

    private func width(_ call: borrowing LayeredCall) -> Int? { call.changes.last?.width }

    private func limit(_ call: borrowing LayeredCall) -> LayerLimit? {
        call.call.core.explain(SlotID(index: 0, generation: 1), at: call.call.now)?.limit
    }

    @Test func `loses layers, then its video, never its sound, and has all of it back`() throws {
        var call = try LayeredCall(LayeredCall.Settings(), seed: 1)
        call.run(until: 4)
        var seen = self.width(call)
        #expect(seen == Self.top)
        // A queue that neither empties nor grows nor shrinks.
        var told = press(&call, seconds: 4, busy: 1) { _ in 60 }
        #expect(told.last?.step == .layers)
        var limit = self.limit(call)
        #expect(limit == .overload)
        call.run(until: call.second + 1)
        seen = self.width(call)
        #expect(seen == Self.lowest)
        let wanted = call.call.core.receiver.publications[1].wanted
        #expect(wanted == 0b111 || wanted == 0b100, "what is left out for a while stays wanted")

        told = press(&call, seconds: 12, busy: 1) { _ in 200 }
        #expect(told.map(\.step).contains(.video))
        var hold = self.hold(call)
        #expect(hold == .quality)
        limit = self.limit(call)
        #expect(limit == .overload)
        let pressed = call.second
        let silent = call.silentShare(in: 4..<pressed)
        #expect(silent == 0)

        told = press(&call, seconds: 10, busy: 0.4) { _ in 1 }
        #expect(told.last?.step == WorkerOverload.Step.none)
        call.run(until: call.second + 3)
        seen = self.width(call)
        #expect(seen == Self.top)
        hold = self.hold(call)
        #expect(hold == nil)
        limit = self.limit(call)
        #expect(limit == LayerLimit.none)
    }

    private func fallback(_ call: borrowing LayeredCall) -> SheddingPlan.Fallback? {
        call.call.core.overload.sheddingClaim(
            of: 0,
            call.call.core.receiver,
            call.call.core.forwarder,
            call.call.core.allocator
        )?.fallback
    }

    @Test func `O-9 video that may not be switched off is the last, and its viewer is told`() throws
    {
        var call = try LayeredCall(LayeredCall.Settings(), seed: 1)
        call.run(until: 4)
        var place = fallback(call)
        #expect(place == .allowed)
        call.call.core.forwarder.slotRecords[0].mayFallBack = false
        place = fallback(call)
        #expect(place == .forbiddenBySubscriber)
        call.call.core.receiver.publications[1].configuration.audioFallback = false
        place = fallback(call)
        #expect(place == .forbiddenByPublisher)

        let told = press(&call, seconds: 16, busy: 1) { _ in 200 }
        #expect(told.map(\.step).contains(.video))
        let hold = self.hold(call)
        #expect(hold == .quality)
    }

    @Test func `of two viewers the one of a talker keeps its layer`() throws {
        var call = try Call()
        call.join(publications: [Media.video(0), Media.video(1)])
        call.join(slots: [Media.slot(0), Media.slot(1, ssrc: 0xcccc)])
        call.apply(.feature(PublicationID(index: 1, generation: 1), true))
        let isFeatured = call.core.receiver.publications[1].configuration.isFeatured
        #expect(isFeatured)
    }
}
