/// Viewers who join a room whose media runs.
struct LateViewers: Sendable {
    /// Session of their own, so that their counts are separate.
    var crowd: Session
    var room: String
    /// Media that the room's publisher sends.
    var media: RoomPlan.Media
    var count: Int

    /// Calls at a time, so that a hundred joins at each of three nodes take less than a second.
    private static let concurrency = 64
    /// Wait for the last of their keyframe requests.
    private static let drain = Duration.seconds(1)

    /// Lets them all join at once and watch the publisher of `running`.
    func join(beside running: Session) async throws -> LateJoins {
        let before = await running.engine.perform { $0.snapshot() }
        let start = ContinuousClock.now
        let viewer = RoomPlan.broadcast(media, viewers: 1).participants[1]
        try await Session.concurrently(Array(0..<count), limit: Self.concurrency) { number in
            var newcomer = viewer
            newcomer.name = "late-\(number)"
            try await crowd.join(room, newcomer)
            try await crowd.watch(room, newcomer, keepsFrames: false)
        }
        try await crowd.awaitConnected()
        let taken = start.duration(to: .now)
        try await Task.sleep(for: Self.drain)
        let after = await running.engine.perform { $0.snapshot() }
        return LateJoins(
            count: count,
            seconds: taken / .seconds(1),
            keyframeRequests: after.publishers.keyframeRequests
                &- before.publishers.keyframeRequests
        )
    }
}

/// Time and keyframe requests of viewers who came late.
struct LateJoins: Sendable {
    var count: Int
    /// Time until the last of them was connected.
    var seconds: Double
    /// Keyframe requests that reached the publisher meanwhile, and in the second after.
    var keyframeRequests: UInt64
}
