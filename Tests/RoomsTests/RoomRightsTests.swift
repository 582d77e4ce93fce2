import RTP
import Rooms
import Testing
import WorkerInterface

@Suite struct RoomRightsTests {

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var kind = Room.Kind.group
        var knock = false
        var role = "participant"
        var mode = Room.Mode.sendAndReceive
        var audio = Room.PublishVerdict.open
        var video = Room.PublishVerdict.open
        var screen = Room.PublishVerdict.open

        static func all(
            _ name: String,
            kind: Room.Kind = .group,
            knock: Bool = false,
            role: String = "participant",
            mode: Room.Mode = .sendAndReceive,
            _ verdict: Room.PublishVerdict
        ) -> Self {
            Self(
                testDescription: name,
                kind: kind,
                knock: knock,
                role: role,
                mode: mode,
                audio: verdict,
                video: verdict,
                screen: verdict
            )
        }
    }

    static let rows: [Row] = [
        .all("group", .open),
        .all("viewer", role: "viewer", .gated(.role)),
        .all("receives only", mode: .receiveOnly, .refused(.mode)),
        .all("signals only", mode: .signallingOnly, .refused(.mode)),
        .all("mode before role", role: "viewer", mode: .receiveOnly, .refused(.mode)),
        .all("knocks", knock: true, .gated(.knock)),
        .all("a moderator does not knock", knock: true, role: "moderator", .open),
        .all("lecture", kind: .lecture, .gated(.floor)),
        .all("lecture, moderator", kind: .lecture, role: "moderator", .open),
        .all("live event, host", kind: .singleHost, role: "moderator", .open),
        .all("role before knock", knock: true, role: "viewer", .gated(.role)),
        Row(
            testDescription: "audio only, host",
            kind: .singleHostAudioOnly,
            role: "moderator",
            audio: .open,
            video: .refused(.eventType),
            screen: .refused(.eventType)
        ),
        Row(
            testDescription: "a role of its own",
            role: "speaker",
            audio: .open,
            video: .gated(.role),
            screen: .gated(.role)
        ),
    ]

    @Test(arguments: rows)
    func `may publish`(_ row: Row) throws {
        var settings = Room.Settings()
        settings.kind = row.kind
        settings.knock = row.knock
        var speaker = Room.PublishRights()
        speaker.audio = true
        settings.roles.append(Room.Role(name: "speaker", publish: speaker))
        var story = RoomDriver(settings)
        try story.join("p", role: row.role, mode: row.mode)
        let participant = try #require(story.room.participants["p"])
        #expect(story.room.mayPublish(participant, .audio, from: .microphone) == row.audio)
        #expect(story.room.mayPublish(participant, .video, from: .camera) == row.video)
        #expect(story.room.mayPublish(participant, .video, from: .screen) == row.screen)
    }

    @Test func `only hosts enter a live event before it is ready`() {
        var settings = Room.Settings()
        settings.kind = .singleHost
        var story = RoomDriver(settings)
        #expect(story.refusal { story throws(CallError) in try story.join("guest") }?.code == 4091)
        #expect(
            story.refusal { story throws(CallError) in try story.join("host", role: "moderator") }
                == nil
        )
    }

    @Test func `a live event has as many hosts as it has places`() throws {
        var settings = Room.Settings()
        settings.kind = .singleHost
        var story = RoomDriver(settings)
        try story.join("one", role: "moderator")
        try story.join("two", role: "moderator")
        try story.offer("one", "0:audio:sendonly")
        #expect(story.gates() == [true])
        try story.offer("two", "0:audio:sendonly")
        #expect(story.gates() == [false])
        #expect(story.room.streamsInOrder.map(\.participant) == ["one"])
        #expect(story.answered.map(\.stream) == [nil])
        // The freed place is given to the next at once.
        try story.apply(.leave(participant: "one"))
        #expect(story.gates() == [true])
        #expect(story.room.streamsInOrder.map(\.participant) == ["two"])
    }

    @Test func `a waiting host that is muted gets the place muted`() throws {
        var settings = Room.Settings()
        settings.kind = .singleHost
        var story = RoomDriver(settings)
        try story.join("one", role: "moderator")
        try story.join("two", role: "moderator")
        try story.offer("one", "0:audio:sendonly")
        try story.offer("two", "0:audio:sendonly")
        try story.apply(.hardMute("two", [.audio], on: true, by: nil))
        let waiting = try story.room.participant("two")
        #expect(story.room.mayPublish(waiting, .audio, from: .microphone) == .gated(.hostPlace))
        try story.apply(.leave(participant: "one"))
        #expect(story.gates() == [])
        let muted = try story.room.participant("two")
        #expect(story.room.mayPublish(muted, .audio, from: .microphone) == .gated(.mute))
        #expect(story.room.streamsInOrder.map { $0.isEnabled(.audio) } == [false])
    }

    @Test func `subscribe rights name roles, one's own stream aside`() throws {
        var settings = Room.Settings()
        settings.roles.append(
            Room.Role(name: "student", publish: .all, watches: ["moderator"])
        )
        var story = RoomDriver(settings)
        for (id, role) in [("t", "moderator"), ("s1", "student"), ("s2", "student")] {
            try story.join(id, role: role)
        }
        let room = story.room
        let rows = [
            ("t", "s1", true), ("s2", "s1", false), ("s1", "s1", true), ("s1", "t", true),
        ]
        for (publisher, subscriber, open) in rows {
            let verdict = room.mayForward(
                .audio,
                of: .microphone,
                from: try room.participant(publisher),
                to: try room.participant(subscriber)
            )
            #expect((verdict == .open) == open, "\(publisher) to \(subscriber)")
        }
    }

    @Test func `a lecture's listeners agree on m-lines but have no stream`() throws {
        var settings = Room.Settings()
        settings.kind = .lecture
        var story = RoomDriver(settings)
        try story.join("p")
        try story.offer("p", "0:audio:sendonly", "1:video:sendonly")
        #expect(story.room.streams.isEmpty)
        #expect(story.gates() == [false, false])
        #expect(story.answered.allSatisfy { $0.refused == nil })
    }

    @Test func `media that mode or event type forbid is refused in the answer`() throws {
        var settings = Room.Settings()
        settings.kind = .singleHostAudioOnly
        var story = RoomDriver(settings)
        try story.join("host", role: "moderator")
        try story.offer("host", "0:audio:sendonly", "1:video:sendonly", "2:video:recvonly")
        #expect(story.answered.map(\.refused) == [nil, "event-type", nil])
        #expect(story.answered.map(\.direction) == [.sendonly, .inactive, .recvonly])
    }
}
