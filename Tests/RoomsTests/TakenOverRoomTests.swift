import Contract
import JSON
import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import ControlPlane
@testable import Rooms

/// A room of another node that goes on at this one, made of what that node has journaled.
@Suite struct TakenOverRoomTests {
    /// Facts about a room that another node goes on with.
    private struct Facts: Equatable {
        var settings: Room.Settings
        var people: [String]
        var isLocked: Bool
        var pins: [String]
        var created: Double

        init?(_ driver: RestartDriver, _ name: String) {
            guard let room = driver.plane.rooms[name]?.room else { return nil }
            settings = room.settings
            let all = room.members + room.awaited
            people = all.map {
                "\($0.id) \($0.role) \($0.mode) \($0.hardMuted.count) \($0.admitted) \($0.joined)"
            }
            isLocked = room.locked
            pins = room.pins
            created = room.created
        }
    }

    private struct Told: Decodable {
        struct Params: Decodable {
            var event: String
            var seq: Int64
        }

        var params: Params
    }

    private func told(_ driver: RestartDriver, _ room: String) throws -> [Told.Params] {
        try (driver.events[room] ?? []).map { line in
            try JSON(parsing: line).decode(Told.self, isClosed: false).params
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `whatever was done, another node goes on with it`(seed: UInt64) throws {
        var old = RestartDriver(seed: seed)
        var random = SeededRandom(seed: seed)
        for _ in 0..<120 { RestartTests.step(&old, &random) }
        old.pass(milliseconds: 500)
        for name in ["r", "other"] {
            guard let before = Facts(old, name) else { continue }
            let numbered = old.plane.journals.numbered(name)
            let people = old.plane.rooms[name]?.room.participants.values.filter {
                !$0.transports.isEmpty
            }
            var new = RestartDriver(seed: seed + 1_000)
            new.pass(milliseconds: 700_000)
            new.clockLag = Double(old.now.nanoseconds - new.now.nanoseconds) / 1e9
            let isTaken = new.adopt(old.journaled(name))
            #expect(isTaken)
            #expect(new.errors == [])
            #expect(Facts(new, name) == before)
            let room = try #require(new.plane.rooms[name]?.room)
            #expect(room.streams.isEmpty && room.subscriptions.isEmpty)
            #expect(room.participants.values.allSatisfy { $0.transports.isEmpty })
            for participant in people ?? [] {
                #expect(room.participants[participant.id]?.connection == .disconnected)
            }
            let events = try told(new, name)
            #expect(events.map(\.seq) == (0..<Int64(events.count)).map { Int64(numbered) + 1 + $0 })
            #expect(events.count { $0.event == "participant.moveWanted" } == people?.count)
            #expect(new.workers == [ToldWorker(), ToldWorker()])
            // A client that was connected there comes back here.
            if let id = people?.first?.id {
                let offer = SmallOffer(["0:audio:sendonly", "1:video:sendonly"]).text
                let reply = new.call(
                    "transport.offer",
                    ["room": .string(name), "participant": .string(id), "sdp": .string(offer)]
                )
                #expect(reply.contains("\"sdp\""), "\(reply)")
            }
            // People who do not come back leave after the usual time, by the clock of this node.
            new.pass(milliseconds: 119_000)
            let present = new.plane.rooms[name]?.room.participants
            #expect((people ?? []).allSatisfy { present?[$0.id] != nil })
            new.pass(milliseconds: 2_000)
            let left = new.plane.rooms[name]?.room.participants
            #expect((people ?? []).dropFirst().allSatisfy { left?[$0.id] == nil })
        }
    }

    private func meeting() -> RestartDriver {
        var driver = RestartDriver(seed: 3)
        driver.call("room.create", ["room": "r", "custom": ["topic": "tea"]])
        for id in ["a", "b"] {
            driver.call("participant.join", ["room": "r", "participant": .string(id)])
            let offer = SmallOffer(["0:audio:sendonly", "1:video:sendonly"]).text
            driver.call(
                "transport.offer",
                ["room": "r", "participant": .string(id), "sdp": .string(offer)]
            )
        }
        return driver
    }

    @Test func `a journal has no password and no key`() throws {
        let driver = meeting()
        let transports = driver.plane.rooms["r"]?.room.placement.negotiated.values
        let secrets = (transports ?? [:].values).map(\.configuration.ice.localPassword)
        #expect(secrets.count == 2 && secrets.allSatisfy { $0.utf8.count >= 22 })
        for (key, value) in driver.journaled {
            let text = String(decoding: value, as: UTF8.self)
            #expect(secrets.allSatisfy { !text.contains($0) }, "record \(key)")
        }
        let url = try #require(StreamURL("rtmp://user:word@live.example:1935/app/secret-key"))
        #expect(url.withoutSecrets.text == "rtmp://live.example:1935")
    }

    @Test func `a copy is given up without a word`() {
        var driver = meeting()
        let told = driver.events["r"]?.count
        driver.abandon("r")
        #expect(driver.events["r"]?.count == told)
        #expect(driver.workers == [ToldWorker(), ToldWorker()])
        #expect(driver.plane.leakedObjects == [])
        let refusal = driver.call("room.get", ["room": "r"])
        #expect(refusal.contains("no-such-room"))
        // It may come back, or be made again.
        let isTaken = driver.adopt(meeting().journaled("r"))
        let shown = driver.call("room.get", ["room": "r"])
        #expect(isTaken && shown.contains("tea"))
        driver.abandon("r")
        driver.call("room.create", ["room": "r"])
        #expect(driver.plane.journals.numbered("r") == 1)
    }

    @Test func `operations under way end with an abandoned copy, and are not told`() {
        var driver = meeting()
        driver.passesFences = false
        driver.call("participant.hardMute", ["room": "r", "participant": "a", "media": ["audio"]])
        let told = driver.events["r"]?.count
        driver.abandon("r")
        driver.passesFences = true
        driver.call("server.info")
        #expect(driver.events["r"]?.count == told)
        #expect(driver.plane.leakedObjects == [])
    }

    @Test func `records that do not fit are left out`() {
        var room = meeting().journaled("r")
        var driver = RestartDriver(seed: 9)
        room.records["p/r/a"] = [1, 2, 3]
        let isTaken = driver.adopt(room)
        #expect(!isTaken && driver.errors.count == 1)
        room.records["r/r/"] = nil
        let hadEnded = driver.adopt(room)
        #expect(!hadEnded && driver.errors.count == 1)
        let reply = driver.call("room.create", ["room": "r"])
        #expect(reply.contains("result"))
    }
}
