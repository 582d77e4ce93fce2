import RTP
import Testing
import WorkerInterface

@testable import Contract
@testable import JSON

/// Moderators' actions (A4), as stories; names begin with the rows that they prove.
@Suite struct ModeratorStoryTests {
    private func act(
        _ method: String,
        _ more: [String: JSON] = [:],
        _ driver: inout ControlDriver
    ) throws -> Fence? {
        let params: [String: JSON] = ["room": "r", "by": "m"]
        let result = try driver.done(method, .object(params.merging(more) { $1 }))
        return try result.decode(Done.self).fence
    }

    @Test func `E-4 E-5 a room's mute spares its caller and meets who comes later`() throws {
        var driver = try ControlDriver.moderated()
        try driver.offer("m", "0:audio:sendonly")
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        _ = driver.takeEventSummaries()
        _ = driver.takeCommands()
        #expect(try act("room.hardMute", [:], &driver) != nil)
        #expect(driver.takeGates() == [false])
        #expect(driver.takeEventSummaries() == ["room.hardMuted all", "stream.changed all"])
        try driver.join("late")
        try driver.offer("late", "0:audio:sendonly")
        #expect(driver.takeGates() == [false])
        #expect(try driver.shown().hardMuted)
        _ = driver.takeEventSummaries()
        #expect(try act("room.hardUnmute", [:], &driver) == nil)
        #expect(driver.takeGates() == [true, true])
        #expect(
            driver.takeEventSummaries() == [
                "room.hardUnmuted all", "stream.changed all", "stream.changed all",
            ]
        )
    }

    @Test func `E-6 what is in process ends with its room, not in a later one`() throws {
        var driver = try ControlDriver.moderated()
        driver.holdsFences = true
        driver.send("room.hardMute", ["room": "r"])
        let first = driver.fences
        for method in ["room.close", "room.create", "room.hardMute"] {
            driver.send(method, ["room": "r"])
        }
        for (worker, epoch) in first {
            driver.tell(.fenced(epoch: epoch, at: driver.now, packets: 0), from: worker)
        }
        let again = driver.send("room.hardMute", ["room": "r"])
        guard case .failure(let error)? = driver.replies[again] else {
            Issue.record("a mute in process was taken twice")
            return
        }
        #expect(error.code == 5037)
    }

    @Test func `E-7 the three mutes are independent of one another`() throws {
        var driver = try ControlDriver.moderated()
        let stream = try #require(try driver.offer("a", "0:audio:sendonly")[0].stream)
        _ = driver.takeCommands()
        let switches: [(on: String, off: String, more: [String: JSON])] = [
            ("room.hardMute", "room.hardUnmute", [:]),
            (
                "participant.hardMute", "participant.hardUnmute",
                ["participant": "a", "media": ["audio"]]
            ),
        ]
        let own: JSON = ["room": "r", "stream": .string(stream.rawValue), "audio": false]
        try driver.done("stream.update", own)
        for each in switches { _ = try act(each.on, each.more, &driver) }
        #expect(driver.takeGates() == [false])
        for each in switches { _ = try act(each.off, each.more, &driver) }
        #expect(driver.takeGates() == [])
        try driver.done(
            "stream.update",
            ["room": "r", "stream": .string(stream.rawValue), "audio": true]
        )
        #expect(driver.takeGates() == [true])
    }

    @Test func `E-8 E-10 a participant's mute holds for what it publishes later`() throws {
        var driver = try ControlDriver.moderated()
        let video: [String: JSON] = ["participant": "a", "media": ["video"]]
        #expect(try act("participant.hardMute", video, &driver)?.packets == 0)
        #expect(driver.takeEventSummaries() == ["participant.hardMuted a,m"])
        _ = try act("participant.hardMute", video, &driver)
        #expect(driver.takeEventSummaries() == [])
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(driver.takeGates() == [true, false])
        #expect(try driver.shown().participants[1].hardMuted == [.video])
        #expect(try driver.shown().streams[0].video?.enabled == false)
        // Taking the participant over does not help.
        try driver.join("a")
        try driver.offer("a", "0:video:sendonly")
        #expect(driver.takeGates() == [false])
        _ = driver.takeEventSummaries()
        _ = try act("participant.hardUnmute", video, &driver)
        #expect(driver.takeGates() == [true])
        #expect(
            driver.takeEventSummaries() == ["participant.hardUnmuted a,m", "stream.changed all"]
        )
    }

    @Test(arguments: ["participant.leave", "participant.drop"])
    func `A0-5 E-8 E-10 leaving and joining again lifts no mute`(departure: String) throws {
        var driver = try ControlDriver.moderated()
        let video: [String: JSON] = ["participant": "a", "media": ["video"]]
        let join: JSON = ["room": "r", "participant": "a"]
        let list: JSON = ["room": "r", "participants": ["a"]]
        let leave = departure == "participant.leave" ? join : list
        _ = try act("participant.hardMute", video, &driver)
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        try driver.done(departure, leave)
        _ = driver.takeCommands()
        driver.events = []
        let back = try driver.done("participant.join", join).decode(ParticipantJoin.Result.self)
        #expect(back.participantInfo.hardMuted == [.video])
        let told = driver.events.first?.data["participantInfo"]?["hardMuted"]
        #expect(told == JSON.array(["video"]))
        #expect(driver.takeEventSummaries() == ["participant.joined all"])
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(driver.takeGates() == [true, false])
        #expect(try driver.shown().streams[0].video?.enabled == false)
        _ = try act("participant.hardUnmute", video, &driver)
        #expect(driver.takeGates() == [true])
        // A lifted mute does not come back.
        try driver.done(departure, leave)
        let free = try driver.done("participant.join", join).decode(ParticipantJoin.Result.self)
        #expect(free.participantInfo.hardMuted == [])
    }

    @Test func `E-8 who watches is told that video is muted`() throws {
        var driver = try ControlDriver.moderated()
        let stream = try #require(try driver.offer("a", "0:video:sendonly")[0].stream)
        try driver.offer("b", "0:video:recvonly")
        try driver.watch("b", stream)
        _ = driver.takeEventSummaries()
        let video: [String: JSON] = ["participant": "a", "media": ["video"]]
        _ = try act("participant.hardMute", video, &driver)
        let disabled = driver.events.first { $0.event == "subscription.videoDisabled" }
        #expect(disabled?.data["reason"] == "muted")
        _ = driver.takeEventSummaries()
        _ = try act("participant.hardUnmute", video, &driver)
        let enabled = driver.events.first { $0.event == "subscription.videoEnabled" }
        #expect(enabled?.data["reason"] == "muted")
    }

    @Test func `E-11 E-12 a locked room lets in moderators who return and who was there`() throws {
        var driver = try ControlDriver.moderated()
        try driver.join("n", ["role": "moderator"])
        try driver.done("participant.leave", ["room": "r", "participant": "n"])
        driver.events = []
        _ = try act("room.lock", [:], &driver)
        #expect(driver.takeEventSummaries() == ["room.locked all"])
        #expect(try driver.shown().locked)
        try driver.join("a")
        try driver.join("n", ["role": "moderator"])
        for role in ["participant", "moderator"] as [JSON] {
            let join: JSON = ["room": "r", "participant": "new", "role": role]
            guard case .failure(let error) = driver.call("participant.join", join) else {
                Issue.record("a locked room let somebody in")
                return
            }
            #expect(error.code == 4091 && error.reason == "room-locked")
        }
        _ = driver.takeEventSummaries()
        _ = try act("room.unlock", [:], &driver)
        #expect(driver.takeEventSummaries() == ["room.unlocked all"])
        try driver.join("new")
    }

    @Test func `E-13 dropping names each and bans none`() throws {
        var driver = try ControlDriver.moderated()
        try driver.offer("a", "0:audio:sendonly")
        _ = driver.takeEventSummaries()
        let result = try driver.done(
            "participant.drop",
            ["room": "r", "participants": ["x", "a"], "by": "m", "detail": "loud"]
        ).decode(ParticipantDrop.Result.self)
        #expect(result.results.map(\.dropped) == [false, true])
        #expect(result.fence != nil)
        #expect(driver.events.last?.data["reason"] == "dropped")
        #expect(driver.events.last?.data["detail"] == "loud")
        #expect(driver.events.last?.data["by"] == "m")
        #expect(driver.takeEventSummaries() == ["stream.destroyed all", "participant.left all"])
        try driver.join("a")
    }

    @Test func `E-15 E-16 E-18 who knocks is ready when let in`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        try driver.join("w")
        try driver.join("x")
        #expect(
            driver.takeEventSummaries() == ["participant.awaited w,m", "participant.awaited x,m"]
        )
        let mids = try driver.offer("w", "0:audio:sendonly")
        #expect(mids[0].refused == nil && mids[0].stream == nil)
        #expect(driver.takeGates() == [false])
        _ = try act("participant.approve", ["participant": "w"], &driver)
        #expect(
            driver.takeEventSummaries() == [
                "participant.approved w,m", "participant.joined all", "stream.created all",
            ]
        )
        #expect(driver.takeGates() == [true])
        #expect(try act("participant.deny", ["participant": "x"], &driver) != nil)
        #expect(
            driver.takeEventSummaries() == ["participant.denied x,m", "participant.left x,m"]
        )
        #expect(try driver.shown().awaited.isEmpty)
    }

    @Test func `E-15 only moderators hear of who waits`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        try driver.join("w")
        _ = driver.takeEventSummaries()
        _ = try act("participant.setMode", ["participant": "w", "mode": "RECV_ONLY"], &driver)
        _ = try act(
            "role.change",
            ["participant": "w", "role": "viewer", "force": true],
            &driver
        )
        #expect(
            driver.takeEventSummaries() == [
                "participant.modeChanged w,m", "participant.roleChanged w,m",
            ]
        )
        try driver.done("participant.leave", ["room": "r", "participant": "w"])
        #expect(driver.events.map { $0.data["by"] } == ["w"])
        #expect(driver.takeEventSummaries() == ["participant.left w,m"])
    }

    @Test func `E-16 who was denied leaves nothing behind`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        try driver.join("w", ["custom": ["k": 1]])
        _ = try act("participant.deny", ["participant": "w"], &driver)
        try driver.join("w", ["role": "moderator"])
        #expect(try driver.shown().participants.last?.custom == [:])
    }

    @Test func `E-15 E-27 a new moderator waits no longer, and the others hear of it`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        try driver.join("n", ["role": "moderator"])
        try driver.join("w")
        _ = driver.takeEventSummaries()
        let change: [String: JSON] = ["participant": "w", "role": "moderator", "force": true]
        _ = try act("role.change", change, &driver)
        #expect(driver.events.first { $0.event == "participant.approved" }?.data["by"] == "m")
        #expect(
            driver.takeEventSummaries() == [
                "participant.roleChanged w,m,n", "participant.approved w,m,n",
                "participant.joined all",
            ]
        )
    }

    @Test func `E-17 E-26 E-36 E-37 a moderator finds all when it comes back`() throws {
        var driver = try ControlDriver.moderated(["mode": "lecture"])
        for id in ["b", "a"] {
            try driver.done("floor.request", ["room": "r", "participant": .string(id)])
        }
        _ = try act("floor.grant", ["participant": "b"], &driver)
        _ = try act("pin.add", ["participants": ["b", "a"]], &driver)
        _ = try act("room.hardMute", [:], &driver)
        try driver.done("room.update", ["room": "r", "settings": ["knock": true]])
        try driver.join("w")
        _ = try act("room.lock", [:], &driver)
        try driver.done("participant.leave", ["room": "r", "participant": "m"])
        let back = try driver.done(
            "participant.join",
            ["room": "r", "participant": "m", "role": "moderator"]
        ).decode(ParticipantJoin.Result.self)
        #expect(back.roomInfo.floor.requested == ["a"])
        #expect(back.roomInfo.floor.granted == ["b"])
        #expect(back.roomInfo.pins == ["b", "a"])
        #expect(back.roomInfo.awaited?.map(\.participant) == ["w"])
        #expect(back.roomInfo.locked && back.roomInfo.hardMuted)
    }

    @Test func `E-19 E-22 E-24 the floor opens the gate and takes it away`() throws {
        var driver = try ControlDriver.moderated(["mode": "lecture"])
        let mids = try driver.offer("a", "0:audio:sendonly")
        #expect(mids[0].refused == nil && mids[0].stream == nil)
        #expect(driver.takeGates() == [false])
        try driver.done("floor.request", ["room": "r", "participant": "a"])
        #expect(driver.takeEventSummaries() == ["floor.requested a,m"])
        #expect(try act("floor.grant", ["participant": "a"], &driver) == nil)
        #expect(driver.events.first?.data["code"] == 1708)
        #expect(driver.takeEventSummaries() == ["floor.granted a,m", "stream.created all"])
        #expect(driver.takeGates() == [true])
        #expect(try act("floor.release", ["participant": "a"], &driver) != nil)
        #expect(driver.events.first?.data["code"] == 1712)
        #expect(driver.takeEventSummaries() == ["floor.released a,m", "stream.destroyed all"])
        #expect(driver.takeGates() == [false])
        // When the floor is regained, the stream is created again on the same m-line, without an
        // offer.
        try driver.done("floor.request", ["room": "r", "participant": "a"])
        _ = driver.takeEventSummaries()
        _ = try act("floor.grant", ["participant": "a"], &driver)
        #expect(driver.takeEventSummaries() == ["floor.granted a,m", "stream.created all"])
        #expect(driver.takeGates() == [true])
    }

    @Test func `E-20 E-21 E-23 E-25 hands go down and the floor comes back`() throws {
        var driver = try ControlDriver.moderated(["mode": "lecture"])
        let a: JSON = ["room": "r", "participant": "a"]
        try driver.done("floor.request", a)
        try driver.done("floor.cancel", a)
        #expect(driver.takeEventSummaries() == ["floor.requested a,m", "floor.cancelled a,m"])
        try driver.done("floor.request", a)
        _ = driver.takeEventSummaries()
        _ = try act("floor.deny", ["participant": "a"], &driver)
        #expect(driver.events.first?.data["code"] == 4117)
        #expect(driver.takeEventSummaries() == ["floor.denied a,m"])
        try driver.done("floor.request", a)
        _ = try act("floor.grant", ["participant": "a"], &driver)
        _ = driver.takeEventSummaries()
        let fence = try driver.done("floor.finish", a).decode(Done.self).fence
        #expect(fence != nil)
        #expect(driver.takeEventSummaries() == ["floor.finished a,m"])
        // StaleMedia gives the floor back, and withdraws a request.
        try driver.done("floor.request", a)
        _ = try act("floor.grant", ["participant": "a"], &driver)
        try driver.done("floor.request", ["room": "r", "participant": "b"])
        _ = driver.takeEventSummaries()
        try driver.done("participant.leave", a)
        try driver.done("participant.leave", ["room": "r", "participant": "b"])
        #expect(
            driver.takeEventSummaries() == [
                "floor.finished a,m", "participant.left all", "floor.cancelled b,m",
                "participant.left all",
            ]
        )
    }

    @Test func `E-27 E-28 the moderator's rights move`() throws {
        var driver = try ControlDriver.moderated(["mode": "lecture"])
        try driver.offer("m", "0:audio:sendonly")
        try driver.offer("a", "0:audio:sendonly")
        try driver.done("floor.request", ["room": "r", "participant": "a"])
        _ = try act("floor.grant", ["participant": "a"], &driver)
        _ = driver.takeEventSummaries()
        _ = driver.takeCommands()
        let fence = try act("moderator.transfer", ["participant": "a"], &driver)
        #expect(fence != nil)
        let events = driver.takeEventSummaries()
        #expect(events.first == "moderator.transferred m,a")
        #expect(events.filter { $0 == "participant.roleChanged all" }.count == 2)
        #expect(events.contains("stream.destroyed all"))
        #expect(driver.takeGates() == [false])
        let room = try driver.shown()
        #expect(room.floor.granted.isEmpty)
        #expect(room.participants.map(\.role) == ["participant", "moderator", "participant"])
    }

    @Test func `E-31 E-36 pins are told in full and go with who leaves`() throws {
        var driver = try ControlDriver.moderated()
        _ = try act("pin.add", ["participants": ["b"]], &driver)
        _ = try act("pin.add", ["participants": ["a", "b"]], &driver)
        #expect(driver.events.last?.data["pins"] == ["b", "a"])
        // The list of active speakers changes at once; its second change waits for its interval.
        #expect(
            driver.takeEventSummaries() == [
                "pins.changed all", "talkers.changed all but b", "pins.changed all",
            ]
        )
        try driver.done("participant.leave", ["room": "r", "participant": "b"])
        #expect(driver.events.first?.data["pins"] == ["a"])
        try driver.join("b")
        #expect(try driver.shown().pins == ["a"])
        _ = try act("pin.remove", ["participants": ["a"]], &driver)
        #expect(try driver.shown().pins == [])
    }
}
