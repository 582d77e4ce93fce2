import RTP
import Testing

@testable import Rooms
@testable import WorkerInterface

/// Roles that open and close gates, requests that expire, and moderators that return.
struct RoomRoleTests {
    private static func story(_ role: String) throws -> RoomDriver {
        var settings = Room.Settings()
        var singer = Room.PublishRights()
        singer.audio = true
        settings.roles.append(Room.Role(name: "singer", publish: singer))
        var story = RoomDriver(settings)
        try story.join("m", role: "moderator")
        try story.join("p", role: role)
        return story
    }

    private static func isConfigured(_ story: RoomDriver) -> Bool {
        story.commands.contains { command in
            if case .configure = command { true } else { false }
        }
    }

    @Test func `R-4 a promoted listener is heard on the m-lines it has offered`() throws {
        var story = try Self.story("viewer")
        try story.offer("p", "0:audio:sendonly", "1:video:sendrecv", "2:audio:recvonly")
        #expect(story.answered.map(\.refused) == [nil, nil, nil])
        #expect(story.answered.map(\.direction) == [.sendonly, .sendrecv, .recvonly])
        #expect(story.answered.map(\.stream) == [nil, nil, nil])
        #expect(story.gates() == [false, false])
        #expect(story.room.streams.isEmpty)
        try story.apply(.changeRole("p", to: "participant", force: true, by: "m"))
        #expect(story.gates() == [true, true])
        #expect(!Self.isConfigured(story))
        #expect(story.room.streams.count == 1)
    }

    @Test func `R-5 a demoted publisher is closed, and open again without an offer`() throws {
        var story = try Self.story("participant")
        try story.offer("p", "0:audio:sendonly", "1:video:sendonly")
        for (role, gates, streams) in [
            ("viewer", [false, false], 0), ("participant", [true, true], 1),
            ("singer", [false], 1), ("viewer", [false], 0), ("singer", [true], 1),
        ] {
            try story.apply(.changeRole("p", to: role, force: true, by: "m"))
            #expect(story.gates() == gates, "\(role)")
            #expect(story.room.streams.count == streams, "\(role)")
            #expect(!Self.isConfigured(story))
        }
    }

    @Test func `R-4 of the m-lines only those that the role allows name the stream`() throws {
        var story = try Self.story("singer")
        try story.offer("p", "0:audio:sendonly", "1:video:sendonly")
        let stream = try #require(story.room.streamsInOrder.first)
        #expect(story.answered.map(\.stream) == [stream.id, nil])
        #expect(stream.video == nil)
        try story.apply(.changeRole("p", to: "participant", force: true, by: "m"))
        #expect(story.room.streamsInOrder.first?.video != nil)
    }

    @Test func `R-4 a guest of a live event who becomes its host needs no offer`() throws {
        var settings = Room.Settings()
        settings.kind = .singleHost
        var story = RoomDriver(settings)
        try story.join("host", role: "moderator")
        try story.apply(.setState(.ready, by: nil))
        try story.join("guest")
        try story.offer("guest", "0:audio:sendonly")
        #expect(story.answered.map(\.refused) == [nil])
        try story.apply(.transfer(to: "guest", by: "host"))
        #expect(story.gates() == [true])
        #expect(story.room.streamsInOrder.map(\.participant) == ["guest"])
    }

    @Test func `R-4 what mode refused still needs an offer`() throws {
        var story = try Self.story("participant")
        try story.apply(.setMode("p", .receiveOnly, nil, by: nil))
        try story.offer("p", "0:audio:sendonly")
        #expect(story.answered.map(\.refused) == ["mode"])
        try story.apply(.setMode("p", .sendAndReceive, nil, by: nil))
        #expect(story.room.streams.isEmpty)
        try story.offer("p", "0:audio:sendonly")
        #expect(story.room.streams.count == 1)
    }

    // Requests.

    @Test func `R-3 a request expires at its time, and both are told`() throws {
        for requester in ["m", "p", nil] {
            var story = try Self.story("participant")
            story.shared.now = Instant(nanoseconds: 1_000_000_000)
            #expect(story.room.deadline == nil)
            try story.apply(.changeRole("p", to: "viewer", force: false, by: "m"))
            // A newer request replaces it, and has its own time.
            story.shared.now = Instant(nanoseconds: 11_000_000_000)
            if requester == "p" {
                try story.apply(.changeRole("p", to: "moderator", force: true, by: nil))
            }
            try story.apply(.changeRole("p", to: "viewer", force: false, by: requester))
            let due = Instant(nanoseconds: 71_000_000_000)
            story.shared.now = Instant(nanoseconds: 70_999_999_999)
            #expect(story.room.openRoleRequest(of: "p", at: story.shared.now) != nil)
            #expect(story.room.expire(&story.shared).announcements.isEmpty)
            #expect(story.room.deadline == due)
            #expect(story.room.openRoleRequests(at: due).isEmpty)
            story.shared.now = due
            let told = story.room.expire(&story.shared).announcements
            try #require(told.count == 1)
            guard case .roleExpired(let request, .timeout) = told[0].news else {
                Issue.record("\(told)")
                return
            }
            #expect(request.requester == requester && request.role == "viewer")
            #expect(told[0].to == .only(requester == "m" ? ["p", "m"] : ["p"]))
            #expect(story.room.deadline == nil)
            let refusal = story.refusal { story throws(CallError) in
                try story.apply(.answerRoleRequest(request.id, of: "p", accept: true))
            }
            #expect(refusal?.reason == "no-such-request")
        }
    }

    @Test func `R-3 a request that was answered does not expire`() throws {
        var story = try Self.story("participant")
        try story.apply(.changeRole("p", to: "viewer", force: false, by: "m"))
        let open = story.room.openRoleRequests(at: story.shared.now)
        #expect(open.map(\.target) == ["p"])
        try story.apply(.answerRoleRequest(open[0].id, of: "p", accept: false))
        story.shared.now = story.shared.now.advanced(milliseconds: 60_000)
        #expect(story.room.expire(&story.shared).announcements.isEmpty)
        #expect(story.room.deadline == nil)
    }

    // Moderators that return.

    private static func locked() throws -> RoomDriver {
        var story = RoomDriver()
        for id in ["m", "n", "o"] { try story.join(id, role: "moderator") }
        try story.apply(.lock(true, by: "m"))
        return story
    }

    private static func isLetIn(
        _ id: String,
        role: String? = "moderator",
        _ story: inout RoomDriver
    ) -> Bool {
        let refusal = story.refusal { story throws(CallError) in try story.join(id, role: role) }
        return refusal?.reason != "room-locked"
    }

    @Test func `E-12 a locked room lets in moderators that have left, and no new ones`() throws {
        var story = try Self.locked()
        try story.apply(.leave(participant: "n"))
        #expect(!Self.isLetIn("x", &story))
        #expect(!Self.isLetIn("n", role: nil, &story), "not as a participant")
        #expect(Self.isLetIn("n", &story))
        // The present may always reconnect.
        #expect(Self.isLetIn("m", &story))
    }

    @Test func `E-12 who was dropped or has handed over is new to a locked room`() throws {
        var story = try Self.locked()
        try story.apply(.leave(participant: "n"))
        try story.join("n", role: "moderator")
        try story.apply(.drop(["n"], by: "m", detail: nil))
        #expect(!Self.isLetIn("n", &story))
        try story.apply(.changeRole("o", to: "participant", force: true, by: "m"))
        try story.apply(.leave(participant: "o"))
        #expect(!Self.isLetIn("o", &story))
    }

    @Test func `E-12 a thousand former moderators are remembered`() {
        var former = Room.FormerModerators()
        let moderators = (0...1_000).map { number in
            Room.Participant(
                id: "m\(number)",
                birth: UInt64(number),
                role: "moderator",
                mode: .sendAndReceive,
                admitted: true,
                connection: .none,
                joined: 0
            )
        }
        for moderator in moderators { former.note(moderator, leaving: Room.EndReason.left) }
        #expect(!former.contains("m0") && former.contains("m1") && former.contains("m1000"))
        former.note(moderators[1], leaving: Room.EndReason.disconnected)
        #expect(former.contains("m1"))
        former.note(moderators[1], leaving: Room.EndReason.denied)
        #expect(!former.contains("m1"))
    }
}
