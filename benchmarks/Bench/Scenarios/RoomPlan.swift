/// Participants of a room, with their publications and subscriptions.
struct RoomPlan: Sendable {
    /// Media that a participant publishes.
    enum Media: Sendable {
        case audio
        /// Audio, and VP8 of one layer.
        case camera
        /// Audio, and VP8 of three layers.
        case simulcast
        /// VP8 alone, of 5 Mbit/s.
        case screen

        var hasAudio: Bool { self != .screen }

        var videos: [VideoSettings] {
            switch self {
            case .audio: []
            case .camera: [Library.camera]
            case .simulcast: Library.simulcast
            case .screen: [Library.screen]
            }
        }
    }

    struct Participant: Sendable {
        var name: String
        var media: Media?
        var streamRequests: [WatchRequest.StreamRequest] = []
        /// Pairs of m-lines for receiving, if more than the planned subscriptions.
        var slots = 0
    }

    var name: String
    var participants: [Participant]

    /// Recordings that the room needs.
    var videos: [VideoSettings] { participants.flatMap { $0.media?.videos ?? [] } }

    /// Streams sent to viewers.
    var streams: Int {
        participants.flatMap(\.streamRequests).reduce(0) {
            $0 + ($1.audio ? 1 : 0) + ($1.video ? 1 : 0)
        }
    }
}

extension RoomPlan {
    /// Returns a room with one publisher that all others watch.
    static func broadcast(_ media: Media, viewers: Int, name: String = "broadcast") -> Self {
        let streamRequest = WatchRequest.StreamRequest(
            publisher: "publisher",
            audio: media.hasAudio,
            video: media != .audio,
            layer: 2
        )
        let audience = (0..<viewers).map {
            Participant(name: "viewer-\($0)", streamRequests: [streamRequest])
        }
        let publisher = Participant(name: "publisher", media: media)
        return Self(name: name, participants: [publisher] + audience)
    }

    /// Returns a room with some speakers and many listeners.
    static func panel(speakers: Int, listeners: Int) -> Self {
        let names = (0..<speakers).map { "speaker-\($0)" }
        let streamRequests = names.map {
            WatchRequest.StreamRequest(publisher: $0, audio: true, video: false, layer: 0)
        }
        let audience = (0..<listeners).map {
            Participant(name: "listener-\($0)", streamRequests: streamRequests)
        }
        let panel = names.map { Participant(name: $0, media: .audio) }
        return Self(name: "panel", participants: panel + audience)
    }

    /// Unaffected room that is measured during attacks and wouldSaturate.
    static let canary = meeting(of: 4, media: .simulcast, slots: 3, name: "canary")

    /// Returns a room in which everybody publishes and watches the next `slots` participants.
    ///
    /// Simulcast is received in the highest layer, which every SFU can be made to send.
    static func meeting(
        of count: Int,
        media: Media,
        slots: Int = 9,
        name: String = "meeting"
    ) -> Self {
        let participants = (0..<count).map { index in
            let others = (1..<max(2, count)).prefix(min(slots, count - 1))
            let streamRequests = others.map { step in
                WatchRequest.StreamRequest(
                    publisher: "member-\((index + step) % count)",
                    audio: true,
                    video: media != .audio,
                    layer: 2
                )
            }
            return Participant(
                name: "member-\(index)",
                media: media,
                streamRequests: streamRequests
            )
        }
        return Self(name: name, participants: participants)
    }
}
