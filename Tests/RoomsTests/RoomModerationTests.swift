import Rooms
import Testing
import WorkerInterface

/// Announcements of mutes, and role requests of participants that leave.
struct RoomModerationTests {
    /// A room with a moderator `m`, and `v` who watches the camera of `p`.
    private static func story() throws -> RoomDriver {
        var story = RoomDriver()
        try story.join("m", role: Room.Role.moderatorName)
        try story.join("p")
        try story.join("v")
        try story.offer("p", "0:audio:sendonly", "1:video:sendonly")
        try story.offer("v", "0:audio:recvonly", "1:video:recvonly")
        try story.watch("v", of: "p")
        return story
    }

    /// Reasons for which the last call disabled video, by the participants that were told.
    private static func disabled(_ story: RoomDriver) -> [[String]: Room.DisableReason] {
        var reasons: [[String]: Room.DisableReason] = [:]
        for announcement in story.announcements {
            guard case .videoDisabled(_, let reason) = announcement.news,
                case .only(let audience) = announcement.to
            else { continue }
            reasons[audience] = reason
        }
        return reasons
    }

    @Test func `viewers of a camera that is off are told that it is muted`() throws {
        var story = try Self.story()
        let stream = try #require(story.room.streamsInOrder.first?.id)
        try story.apply(.updateStream(stream, audio: nil, video: false))
        #expect(Self.disabled(story) == [["v"]: .publisher])
        try story.apply(.hardMute("p", [.video], on: true, by: "m"))
        #expect(story.gates() == [], "the gate was closed before")
        #expect(Self.disabled(story) == [["v"]: .muted])
        try story.apply(.hardMute("p", [.video], on: false, by: "m"))
        #expect(Self.disabled(story) == [["v"]: .publisher])
    }

    @Test func `a role request ends when the participant that made it leaves`() throws {
        var story = try Self.story()
        try story.apply(.changeRole("p", to: "viewer", force: false, by: "m"))
        guard case .requested(let request) = story.result else {
            Issue.record("no request was made")
            return
        }
        try story.apply(.leave(participant: "m"))
        let refusal = story.refusal { story throws(CallError) in
            try story.apply(.answerRoleRequest(request, of: "p", accept: true))
        }
        #expect(refusal?.reason == "no-such-request")
        #expect(story.room.participants["p"]?.role == Room.Role.participantName)
    }

    @Test func `a role request ends when the participant that is asked leaves`() throws {
        var story = try Self.story()
        try story.apply(.changeRole("p", to: "viewer", force: false, by: "m"))
        guard case .requested(let request) = story.result else {
            Issue.record("no request was made")
            return
        }
        try story.apply(.leave(participant: "p"))
        try story.join("p")
        let refusal = story.refusal { story throws(CallError) in
            try story.apply(.answerRoleRequest(request, of: "p", accept: true))
        }
        #expect(refusal?.reason == "no-such-request")
    }
}
