import RTP
import Rooms
import Synchronization
import WorkerInterface

/// Driver of a room, one call after the other.
struct RoomDriver {
    var room: Room
    var shared: Room.Shared
    /// Commands of the last call to the first worker.
    var commands: [WorkerCommand] = []
    /// Commands of the last call or notice to all workers, and the freed handles, in short words.
    var words: [String] = []
    /// Announcements of the last call.
    var announcements: [Room.Announcement] = []
    /// Result of the last call.
    var result = Room.Result.none
    /// Lines of the last offer's answer.
    var answered: [Room.AnsweredLine] = []

    init(
        _ settings: Room.Settings = Room.Settings(),
        workers: Int = 1,
        publications: Int = 64,
        spread: Int = 8
    ) {
        let now = Instant(nanoseconds: 0)
        room = Room(name: "r", settings: settings, worker: 0, at: 1, now: now)
        let state = Mutex<UInt64>(1)
        let fingerprint = Fingerprint(algorithm: .sha256, digest: Array(0..<32))
        var limits = Room.Limits()
        limits.workerSpread = spread
        shared = Room.Shared(
            identifiers: (0..<workers).map { _ in
                WorkerIdentifiers(transports: 64, publications: publications, slots: 64)
            },
            locals: (0..<workers).map { _ in
                LocalParameters(candidates: [], fingerprint: fingerprint, cname: "")
            },
            random: RandomSource {
                state.withLock { state in
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    return state ^ (state >> 29)
                }
            },
            limits: limits
        )
    }

    mutating func apply(_ call: Room.Call) throws(CallError) {
        let outcome = try room.apply(call, &shared)
        commands = outcome.change.commands[0] ?? []
        words = Self.words(outcome.change)
        announcements = outcome.change.announcements
        result = outcome.result
        if case .answered(let answered) = outcome.result { self.answered = answered.media }
    }

    mutating func join(
        _ id: String,
        role: String? = nil,
        mode: Room.Mode? = nil
    ) throws(CallError) {
        var join = Room.Join(participant: id)
        join.role = role
        join.mode = mode
        try apply(.join(join))
    }

    mutating func offer(_ id: String, _ lines: String...) throws(CallError) {
        try apply(.offer(Room.Offer(participant: id, sdp: SmallOffer(lines).text)))
    }

    mutating func take(_ notice: Room.Notice) {
        let change = room.take(notice, &shared)
        words = Self.words(change)
        announcements = change.announcements
    }

    /// Lets time pass, and does what is due at its end.
    mutating func pass(seconds: Double) {
        shared.now = shared.now.advanced(milliseconds: Int64(seconds * 1_000))
        shared.unixTime += seconds
        let change = room.expire(&shared)
        words = Self.words(change)
        announcements = change.announcements
    }

    /// Returns the refusal of a step, if any.
    mutating func refusal(_ step: (inout Self) throws(CallError) -> Void) -> CallError? {
        do throws(CallError) {
            try step(&self)
            return nil
        } catch {
            return error
        }
    }

    /// Subscribes a viewer to a publisher's stream.
    mutating func watch(_ viewer: String, of publisher: String) throws(CallError) {
        let stream = room.streamsInOrder.first { $0.participant == publisher }
        try apply(.subscribe(.init(participant: viewer, stream: stream?.id ?? "")))
    }

    /// Points a viewer's only subscription at another publisher's stream.
    mutating func rewatch(_ viewer: String, of publisher: String) throws(CallError) {
        var update = Room.SubscriptionUpdate()
        update.stream = room.streamsInOrder.first { $0.participant == publisher }?.id
        try apply(.updateSubscription(subscription(of: viewer), update))
    }

    mutating func unwatch(_ viewer: String) throws(CallError) {
        try apply(.unsubscribe(subscription(of: viewer)))
    }

    mutating func turn(viewer: String, audio: Bool) throws(CallError) {
        var update = Room.SubscriptionUpdate()
        update.audio = audio
        try apply(.updateSubscription(subscription(of: viewer), update))
    }

    mutating func turn(_ publisher: String, audio: Bool) throws(CallError) {
        let stream = room.streamsInOrder.first { $0.participant == publisher }
        try apply(.updateStream(stream?.id ?? "", audio: audio, video: nil))
    }

    private func subscription(of viewer: String) -> String {
        "sub-\(room.participants[viewer]?.subscriptions.first ?? 0)"
    }

    /// Gate states that the last call set, in order.
    func gates() -> [Bool] {
        commands.compactMap { command in
            guard case .gate(_, let open) = command else { return nil }
            return open
        }
    }
}

/// An offer of m-lines as `mid:kind:direction`; a fourth word is the id of the level extension.
struct SmallOffer {
    let lines: [[Substring]]

    init(_ lines: [String]) { self.lines = lines.map { $0.split(separator: ":") } }

    var text: String {
        let fingerprint = (0..<32).map { _ in "AB" }.joined(separator: ":")
        var text = [
            "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0",
            "a=group:BUNDLE \(lines.map { String($0[0]) }.joined(separator: " "))",
            "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx",
            "a=fingerprint:sha-256 \(fingerprint)", "a=setup:actpass",
        ]
        for line in lines {
            let isAudio = line[1] == "audio"
            text += [
                "m=\(line[1]) 9 UDP/TLS/RTP/SAVPF \(isAudio ? 111 : 96)", "c=IN IP4 0.0.0.0",
                "a=mid:\(line[0])", "a=\(line[2])", "a=rtcp-mux",
                "a=rtpmap:\(isAudio ? "111 opus/48000/2" : "96 VP8/90000")",
            ]
            if line.count > 3 {
                text.append("a=extmap:\(line[3]) urn:ietf:params:rtp-hdrext:ssrc-audio-level")
            }
        }
        return text.joined(separator: "\r\n") + "\r\n"
    }
}
