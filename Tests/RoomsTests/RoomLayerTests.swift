import Foundation
import Testing

@testable import Rooms
@testable import WorkerInterface

/// Commands to workers for layer preferences and caps of roles.
struct RoomLayerTests {
    private static func story() throws -> RoomDriver {
        var settings = Room.Settings()
        var rights = Room.PublishRights.all
        rights.cap = LayerCap(width: 1_280, height: 720, frameRate: 30, bitrate: 2_000_000)
        rights.screenCap = LayerCap(width: 1_920, height: 1_080)
        rights.audioBitrate = 32_000
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
        try Self.offer(&story)
        let camera = LayerCap(width: 1_280, height: 720, frameRate: 30, bitrate: 2_000_000)
        let screen = LayerCap(width: 1_920, height: 1_080)
        #expect(Self.caps(story) == [LayerCap(bitrate: 32_000), camera, screen, .none])
        try story.apply(.changeRole("s", to: "participant", force: true, by: nil))
        let limits = story.commands.compactMap { command in
            if case .limit(_, let cap) = command { cap } else { nil }
        }
        #expect(limits == [.none, .none, .none])
        // The role's bounds for a camera leave its screen alone.
        #expect(Self.caps(story).isEmpty)
    }

    @Test func `R-1 an m-line that turns from camera to screen has the screen's cap`() throws {
        var story = try Self.story()
        try story.offer("s", "0:video:sendonly")
        #expect(Self.caps(story).map(\.width) == [1_280])
        var offer = Room.Offer(participant: "s", sdp: SmallOffer(["0:video:sendonly"]).text)
        offer.sources = ["0": .screen]
        try story.apply(.offer(offer))
        #expect(Self.caps(story).map(\.width) == [1_920])
    }

    @Test func `R-1 the answer says how many bits of audio may come`() throws {
        var story = try Self.story()
        try Self.offer(&story)
        guard case .answered(let answered) = story.result else {
            Issue.record("no answer")
            return
        }
        // The microphone is limited, the screen's audio and the listener are not.
        #expect(answered.sdp.components(separatedBy: "maxaveragebitrate=32000").count == 2)
        try story.offer("g", "0:audio:recvonly")
        guard case .answered(let listener) = story.result else {
            Issue.record("no answer")
            return
        }
        #expect(!listener.sdp.contains("maxaveragebitrate"))
    }

    /// Offers a microphone, a camera, and a screen with its audio.
    private static func offer(_ story: inout RoomDriver) throws {
        let sdp = SmallOffer([
            "0:audio:sendonly", "1:video:sendonly", "2:video:sendonly", "3:audio:sendonly",
        ]).text
        var offer = Room.Offer(participant: "s", sdp: sdp)
        offer.sources = ["2": .screen, "3": .screen]
        try story.apply(.offer(offer))
    }

    /// Caps of the publications that the last call configured.
    private static func caps(_ story: RoomDriver) -> [LayerCap] {
        for case .configure(_, let configuration) in story.commands {
            return configuration.publications.map(\.cap)
        }
        return []
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
        for (change, mayFallBack) in [
            (Room.Setting<Bool>.clear, true), (.set(false), false), (.keep, false),
        ] {
            var update = Room.SubscriptionUpdate()
            update.audioFallback = change
            try story.apply(.updateSubscription(name, update))
            if video.mayFallBack != mayFallBack {
                video.mayFallBack = mayFallBack
                #expect(Self.bindings(story) == [video])
            } else {
                #expect(Self.bindings(story) == [])
            }
        }
        try story.apply(.changeRole("g", to: "participant", force: true, by: nil))
        #expect(Self.bindings(story).map(\.roleCap) == [.none])
    }

    @Test func `R-1 a role's priority holds for viewers who name none`() throws {
        var settings = Room.Settings()
        for (name, priority) in [("lead", 7), ("extra", 0)] {
            var role = Room.Role(name: name, publish: .all)
            role.priority = priority
            settings.roles.append(role)
        }
        var story = RoomDriver(settings)
        try story.join("s", role: "lead")
        try story.join("g", role: "viewer")
        try story.offer("s", "0:video:sendonly")
        try story.offer("g", "0:video:recvonly")
        let stream = try #require(story.room.streamsInOrder.first?.id)
        try story.apply(.subscribe(.init(participant: "g", stream: stream)))
        #expect(Self.bindings(story).map(\.priority) == [7])
        try story.apply(.changeRole("s", to: "extra", force: true, by: nil))
        #expect(Self.bindings(story).map(\.priority) == [0])
        let name = try #require(story.room.subscriptions.values.first).id
        var update = Room.SubscriptionUpdate()
        update.priority = .set(3)
        try story.apply(.updateSubscription(name, update))
        #expect(Self.bindings(story).map(\.priority) == [3])
        try story.apply(.changeRole("s", to: "lead", force: true, by: nil))
        #expect(Self.bindings(story) == [])
        update.priority = .clear
        try story.apply(.updateSubscription(name, update))
        #expect(Self.bindings(story).map(\.priority) == [7])
    }
}
