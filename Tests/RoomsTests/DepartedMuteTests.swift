import JSON
import Testing
import WorkerInterface

@testable import Rooms

/// Hard mutes of participants that leave and come back; names begin with the rows that they prove.
@Suite struct DepartedMuteTests {
    /// A way in which a participant `p` gets out of a room with a moderator `m`.
    struct Departure: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var depart: @Sendable (inout RoomDriver) throws -> Void
    }

    static let departures = [
        Departure(testDescription: "it leaves") { story in
            try story.apply(.leave(participant: "p"))
        },
        Departure(testDescription: "it is dropped") { story in
            try story.apply(.drop(["p"], by: "m"))
        },
        Departure(testDescription: "it is disconnected for long") { story in
            let place = try #require(story.room.participants["p"]?.transports.first?.place)
            story.take(.transport(place, .disconnected(.timeout)))
            story.pass(seconds: 121)
        },
    ]

    private static func story() throws -> RoomDriver {
        var story = RoomDriver()
        try story.join("m", role: Room.Role.moderatorName)
        try story.join("p")
        try story.offer("p", "0:audio:sendonly", "1:video:sendonly")
        return story
    }

    /// Kinds that a moderator has muted for a participant, if it is in the room.
    private static func muted(_ id: String, _ story: RoomDriver) -> [MediaKind] {
        let muted = story.room.participants[id]?.hardMuted ?? []
        return MediaKind.allCases.filter(muted.contains)
    }

    /// Lets `p` join and offer again; returns the states of its gates.
    private static func gatesOfReturn(_ story: inout RoomDriver) throws -> [Bool] {
        try story.join("p")
        try story.offer("p", "0:audio:sendonly", "1:video:sendonly")
        return story.gates()
    }

    @Test(arguments: departures)
    func `A0-5 E-8 E-10 who was muted comes back muted`(_ departure: Departure) throws {
        var story = try Self.story()
        try story.apply(.hardMute("p", [.video], on: true, by: "m"))
        // A second time: the mute does not wear out.
        for _ in 0..<2 {
            try departure.depart(&story)
            #expect(story.room.participants["p"] == nil)
            #expect(try Self.gatesOfReturn(&story) == [true, false])
            #expect(Self.muted("p", story) == [.video])
            let stream = try #require(story.room.streamsInOrder.first)
            #expect(stream.isEnabled(.audio) && !stream.isEnabled(.video))
        }
        try story.apply(.hardMute("p", [.video], on: false, by: "m"))
        #expect(story.gates() == [true])
    }

    @Test(arguments: departures)
    func `E-8 who was unmuted comes back unmuted`(_ departure: Departure) throws {
        var story = try Self.story()
        try story.apply(.hardMute("p", [.audio, .video], on: true, by: "m"))
        try departure.depart(&story)
        #expect(try Self.gatesOfReturn(&story) == [false, false])
        try story.apply(.hardMute("p", [.audio], on: false, by: "m"))
        try departure.depart(&story)
        #expect(try Self.gatesOfReturn(&story) == [true, false])
        try story.apply(.hardMute("p", [.video], on: false, by: nil))
        try departure.depart(&story)
        #expect(try Self.gatesOfReturn(&story) == [true, true])
    }

    @Test func `E-7 neither the publisher's own switch nor the room's mute is remembered`() throws {
        var story = try Self.story()
        try story.turn("p", audio: false)
        try story.apply(.hardMuteRoom(true, by: "m"))
        try story.apply(.leave(participant: "p"))
        try story.apply(.hardMuteRoom(false, by: "m"))
        #expect(try Self.gatesOfReturn(&story) == [true, true])
        #expect(Self.muted("p", story) == [])
    }

    @Test func `E-8 a mute meets its participant alone`() throws {
        var story = try Self.story()
        try story.apply(.hardMute("p", [.video], on: true, by: "m"))
        try story.apply(.leave(participant: "p"))
        try story.join("q")
        #expect(Self.muted("q", story) == [])
        // Nobody who is absent can be unmuted.
        let refusal = story.refusal { story throws(CallError) in
            try story.apply(.hardMute("p", [.video], on: false, by: "m"))
        }
        #expect(refusal?.code == 5045)
    }

    @Test func `E-8 who knocks again after a denial is still muted`() throws {
        var settings = Room.Settings()
        settings.knock = true
        var story = RoomDriver(settings)
        try story.join("m", role: Room.Role.moderatorName)
        try story.join("p")
        try story.apply(.hardMute("p", [.audio], on: true, by: "m"))
        try story.apply(.answerKnock("p", approve: false, by: "m"))
        try story.join("p")
        #expect(Self.muted("p", story) == [.audio])
    }

    @Test func `E-8 the mutes of a thousand who have left are remembered`() {
        var moderation = Room.Moderation()
        for number in 0...1_000 {
            let participant = Room.Participant(
                id: "p\(number)",
                birth: UInt64(number),
                role: "participant",
                mode: .sendAndReceive,
                hardMuted: [.audio],
                admitted: true,
                connection: .none,
                joined: 0
            )
            moderation.keepMutes(of: participant)
        }
        // The first is forgotten, and so is one that has come back.
        let returns = ["p0", "p1", "p1", "p1000"].map { moderation.takeMutes(of: $0).count }
        #expect(returns == [0, 1, 0, 1])
    }

    // Saved state.

    /// The mutes as the reply to a join tells them.
    private static let mutedReply = "\"hardMuted\":[\"audio\"]"
    private static let who: JSON = ["room": "r", "participant": "p"]

    /// Makes a room that a muted participant has left.
    private static func departed() -> RestartDriver {
        var driver = RestartDriver(seed: 1)
        driver.call("room.create", ["room": "r"])
        driver.call("participant.join", ["room": "r", "participant": "m", "role": "moderator"])
        driver.call("participant.join", Self.who)
        let mute: JSON = ["room": "r", "participant": "p", "media": ["audio"], "by": "m"]
        driver.call("participant.hardMute", mute)
        driver.call("participant.leave", Self.who)
        return driver
    }

    @Test func `A0-5 a mute outlives the process`() {
        var driver = Self.departed()
        driver.restart()
        #expect(driver.errors == [])
        let joined = driver.call("participant.join", Self.who)
        #expect(joined.contains(Self.mutedReply), "\(joined)")
        // Once it is lifted, it is gone from the records, too.
        let unmute: JSON = ["room": "r", "participant": "p", "media": ["audio"], "by": "m"]
        driver.call("participant.hardUnmute", unmute)
        driver.call("participant.leave", Self.who)
        driver.restart()
        let again = driver.call("participant.join", Self.who)
        #expect(again.contains("\"hardMuted\":[]"), "\(again)")
        #expect(!again.contains(Self.mutedReply))
    }

    @Test func `A0-5 a mute goes with its room to another node`() {
        let old = Self.departed()
        var new = RestartDriver(seed: 2)
        let isTaken = new.adopt(old.journaled("r"))
        #expect(isTaken)
        let joined = new.call("participant.join", Self.who)
        #expect(joined.contains(Self.mutedReply), "\(joined)")
    }

    @Test func `a record of an earlier version has no mutes of those who left`() throws {
        // As none are saved before there are some, this is a record of that version.
        let record = try JSON(parsingCompact: JSON.compact(Room.Moderation()))
        #expect(record["departedMutes"] == nil && record["formerModerators"] != nil)
        var moderation = try record.decode(Room.Moderation.self, isClosed: true)
        let mutes = moderation.takeMutes(of: "p")
        #expect(mutes.isEmpty)
    }
}
