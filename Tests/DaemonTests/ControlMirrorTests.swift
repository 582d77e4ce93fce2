import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Rooms that span workers, as seen by callers.
@Suite struct ControlMirrorTests {
    /// Makes a call: `a` sends from the first worker; `b` watches on the second, `c` on the first.
    private func call() throws -> (driver: ControlDriver, stream: StreamID) {
        var limits = ControlLimits()
        limits.workerSpread = 0
        var driver = ControlDriver(workers: 2, limits: limits)
        try driver.room()
        for id in ["a", "b", "c"] { try driver.join(id) }
        let stream = try #require(try driver.offer("a", "0:video:sendonly")[0].stream)
        for id in ["b", "c"] {
            try driver.offer(id, "0:video:recvonly")
            try driver.watch(id, stream)
        }
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        return (driver, stream)
    }

    @Test func `a reply waits for every worker that a right is taken from`() throws {
        for order in [[0, 1], [1, 0]] {
            var (driver, stream) = try call()
            driver.holdsFences = true
            let mute = driver.send(
                "stream.update",
                ["room": "r", "stream": .string(stream.rawValue), "video": false]
            )
            let gated = driver.commands.compactMap { worker, command -> Int? in
                if case .gate(_, false) = command { worker } else { nil }
            }
            #expect(gated == [0, 1])
            driver.fence(worker: order[0], packets: 5)
            #expect(driver.replies[mute] == nil && driver.events.isEmpty)
            let last = driver.now.advanced(milliseconds: 250)
            driver.now = last
            driver.fence(worker: order[1], packets: 7)
            let reply = try #require(try driver.replies[mute]?.get())
            let fence = try #require(try reply.decode(Done.self).fence)
            #expect(fence.packets == 12)
            #expect(abs(fence.time - driver.plane.clock.unixTime(at: last)) < 1e-3)
            #expect(driver.takeEvents().first == "stream.changed")
        }
    }

    @Test func `who watches elsewhere gives a handle back when both workers have let go`() throws {
        var (driver, _) = try call()
        #expect(driver.plane.shared.identifiers.map(\.publications.used) == [1, 1])
        driver.holdsFences = true
        let leave = driver.send("participant.leave", ["room": "r", "participant": "b"])
        driver.fence(worker: 1)
        #expect(driver.replies[leave] == nil)
        #expect(driver.plane.shared.identifiers[1].publications.used == 1)
        driver.fence(worker: 0)
        #expect(driver.replies[leave] != nil)
        #expect(driver.plane.shared.identifiers.map(\.publications.used) == [1, 0])
    }

    @Test func `an answer names the port of the worker that the transport is on`() throws {
        var limits = ControlLimits()
        limits.workerSpread = 0
        var driver = ControlDriver(workers: 2, limits: limits)
        try driver.room()
        for (index, id) in ["a", "b", "c", "d"].enumerated() {
            try driver.join(id)
            let sdp = JSON.string(TestOffer(["0:audio:sendonly"]).text)
            let result = try driver.done(
                "transport.offer",
                ["room": "r", "participant": .string(id), "sdp": sdp]
            )
            let answer = try result.decode(TransportOffer.Result.self).sdp
            #expect(answer.contains("127.0.0.1 \(5004 + index % 2)"))
        }
    }

    @Test func `statistics come from all workers of the room`() throws {
        var (driver, stream) = try call()
        let room = try #require(driver.plane.rooms["r"]?.room)
        let publication = try #require(room.streams[stream.rawValue]?.video)
        let id = driver.send("stats.get", ["room": "r"])
        #expect(driver.tokens.map(\.worker) == [0, 1])
        for (worker, token) in driver.tokens {
            var statistics = WorkerStatistics()
            // The mirror has the same number as its home: only the home's figures count.
            let layer = LayerDescription(
                rid: nil,
                width: 0,
                height: 0,
                frameRate: 0,
                bitrate: worker,
                active: true
            )
            var encoding = EncodingStatistics(layer: layer, ssrc: SSRC(rawValue: 7))
            encoding.packets = worker == 0 ? 100 : 1
            statistics.publications = [
                PublicationStatistics(id: publication, codec: .vp8, encodings: [encoding])
            ]
            for participant in room.participants.values {
                for transport in participant.transports where transport.place.worker == worker {
                    for slot in transport.slots {
                        var figures = SlotStatistics(id: slot.id)
                        figures.packets = UInt64(10 + worker)
                        statistics.slots.append(figures)
                    }
                }
            }
            driver.tell(.statistics(token: token, statistics), from: worker)
        }
        let reply = try #require(try driver.replies[id]?.get()).decode(StatsGet.Result.self)
        #expect(reply.streams.flatMap { $0.encodings.map(\.packets) } == [100])
        #expect(reply.subscriptions.map(\.participant) == ["b", "c"])
        #expect(reply.subscriptions.map(\.packets) == [11, 10])
    }

    @Test func `a room without transports has statistics, too`() throws {
        var driver = ControlDriver(workers: 2)
        try driver.room()
        let id = driver.send("stats.get", ["room": "r"])
        let (worker, token) = try #require(driver.tokens.first)
        driver.tell(.statistics(token: token, WorkerStatistics()), from: worker)
        #expect(driver.replies[id] != nil)
    }

    @Test func `events of a slot come from its own worker`() throws {
        var (driver, _) = try call()
        let room = try #require(driver.plane.rooms["r"]?.room)
        let viewer = try #require(room.participants["b"])
        let slot = try #require(viewer.transports.first?.slots.first)
        let number = try #require(slot.subscription)
        driver.tell(.started(slot.id, subscription: number), from: 1)
        driver.tell(
            .layerChanged(slot.id, subscription: number, from: nil, to: LayerName(rid: "h")),
            from: 0
        )
        driver.tell(
            .layerChanged(slot.id, subscription: number, from: nil, to: LayerName(rid: "f")),
            from: 1
        )
        #expect(driver.takeEvents() == ["subscription.connected", "subscription.layerChanged"])
    }

    @Test func `shutdown waits for all workers`() throws {
        var (driver, _) = try call()
        driver.holdsFences = true
        driver.plane.shutdown(at: driver.now)
        driver.drain()
        driver.fence(worker: 1)
        #expect(!driver.hasExited)
        driver.fence(worker: 0)
        #expect(driver.hasExited)
    }
}
