import Testing

@testable import Rooms
@testable import WorkerInterface

/// Commands to workers for layer preferences and caps of roles.
struct RoomLayerTests {
    private static func story() throws -> RoomDriver {
        var settings = Room.Settings()
        var rights = Room.PublishRights.all
        rights.cap = LayerCap(width: 1_280, height: 720, frameRate: 30, bitrate: 2_000_000)
        settings.roles.append(Room.Role(name: "speaker", publish: rights))
        var guest = Room.Role(name: "guest")
        guest.subscribeCap = LayerCap(width: 640, height: 360)
        settings.roles.append(guest)
        var story = RoomDriver(settings)
        try story.join("s", role: "speaker")
        try story.join("g", role: "guest")
        return story
    }

    private static func bindings(_ story: RoomDriver) -> [Binding] {
        story.commands.compactMap { command in
            if case .bind(_, let binding) = command { binding } else { nil }
        }
    }

    @Test func `R-1 a publication comes with its role's cap, and hears of another`() throws {
        var story = try Self.story()
        try story.offer("s", "0:audio:sendonly", "1:video:sendonly")
        var caps: [LayerCap] = []
        for case .configure(_, let configuration) in story.commands {
            caps = configuration.publications.map(\.cap)
        }
        let expected = LayerCap(width: 1_280, height: 720, frameRate: 30, bitrate: 2_000_000)
        #expect(caps == [.none, expected])
        try story.apply(.changeRole("s", to: "participant", force: true, by: nil))
        let limits = story.commands.compactMap { command in
            if case .limit(_, let cap) = command { cap } else { nil }
        }
        #expect(limits == [.none])
    }

    @Test func `O-12 wishes and the role's cap reach the slot, and a change of them only it`()
        throws
    {
        var story = try Self.story()
        try story.offer("s", "0:audio:sendonly", "1:video:sendonly")
        try story.offer("g", "0:audio:recvonly", "1:video:recvonly")
        let stream = try #require(story.room.streamsInOrder.first?.id)
        var preferences = Room.Preferences()
        preferences.width = 320
        preferences.height = 180
        preferences.priority = 9
        preferences.audioFallback = false
        try story.apply(
            .subscribe(.init(participant: "g", stream: stream, preferences: preferences))
        )
        var video = try #require(Self.bindings(story).first { $0.priority == 9 })
        #expect(video.preference == LayerCap(width: 320, height: 180))
        #expect(video.roleCap == LayerCap(width: 640, height: 360))
        #expect(!video.mayFallBack && video.open)
        let audio = try #require(Self.bindings(story).first { $0.priority == 0 })
        #expect(audio.preference == .none && audio.roleCap == .none)

        let name = "sub-\(video.subscription)"
        var update = Room.SubscriptionUpdate()
        update.frameRate = .set(15)
        try story.apply(.updateSubscription(name, update))
        let changed = Self.bindings(story)
        video.preference.frameRate = 15
        #expect(changed == [video])
        try story.apply(.changeRole("g", to: "participant", force: true, by: nil))
        #expect(Self.bindings(story).map(\.roleCap) == [.none])
    }
}
