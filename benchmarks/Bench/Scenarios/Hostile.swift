import Foundation
import RTP
import SFU
import SFUClient

// HOSTILE: clients with valid keys that misbehave, while a room of four has media.
extension Bench {
    func hostile() async throws {
        let adapter = SfudAdapter()
        let canary = RoomPlan.canary
        let load = trial([canary])
        try await with(adapter, load) { session in
            try await session.populate([canary])
            await session.beginMedia()
            let victims = await session.engine.perform { loop in
                loop.publishers.values.flatMap { ($0.tracks(.audio) + $0.layers).map(\.ssrc) }
            }
            for attack in Attack.allCases {
                // Each attack gets new clients, so that it does not inherit damage from the
                // previous one.
                try await session.withCrowd(self.library) { crowd in
                    let room = RoomPlan.meeting(of: 4, media: .camera, slots: 3, name: "\(attack)")
                    try await crowd.populate([room])
                    await crowd.beginMedia()
                    try await self.beside(attack.rawValue, session, adapter, load) {
                        let count = try await crowd.attack(attack, victims: victims, until: $0)
                        return AttackResult(count: count)
                    }
                    try await crowd.close(room)
                }
            }
            try await session.withCrowd(self.library) { crowd in
                let name = "handshakes with others' certificates, B6"
                try await self.beside(name, session, adapter, load) {
                    try await crowd.joinWithWrongCertificates(until: $0)
                }
            }
            try await session.withCrowd(self.library) { crowd in
                let name = "people who lose all rights a moment after they had them, F10"
                try await self.beside(name, session, adapter, load) {
                    AttackResult(count: try await crowd.joinAndLeaveRepeatedly(until: $0))
                }
            }
            try await self.closingEarly(session, adapter, load)
        }
    }

    /// Closes rooms during joins, handshakes and subscriptions, and checks that nothing remains.
    private func closingEarly(
        _ session: Session,
        _ adapter: SfudAdapter,
        _ load: Trial
    ) async throws {
        let before = try await adapter.tenants()
        try await session.withCrowd(library) { crowd in
            let name = "rooms that close while people join, connect and watch, K7"
            try await self.beside(name, session, adapter, load) { until in
                let count = try await crowd.closeEarly(until: until)
                let after = try await adapter.tenants()
                let isLeft = after != before
                return AttackResult(
                    count: count,
                    fault: isLeft ? "\(after) are there, and \(before) were before" : nil
                )
            }
        }
    }

    /// Number of attacks, and the failure that they caused.
    fileprivate struct AttackResult {
        var count: Int
        var fault: String?
    }

    /// Measures the canary room while `runAttack` runs.
    private func beside(
        _ name: String,
        _ session: Session,
        _ adapter: SfudAdapter,
        _ load: Trial,
        _ runAttack: (ContinuousClock.Instant) async throws -> AttackResult
    ) async throws {
        progress.show("sfud: \(name)")
        try await Task.sleep(for: .seconds(load.settleSeconds))
        let before = try await RoomMeasurement(session, adapter)
        let start = ContinuousClock.now
        let made = try await runAttack(start + .seconds(load.seconds))
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        var outcome = Outcome(ScenarioID.hostile.rawValue, adapter.name, size: made.count)
        outcome.note = name
        outcome.profile = profile
        let after = try await RoomMeasurement(session, adapter)
        after.fill(&outcome, since: before)
        outcome[.floodPerSecond] = Double(made.count) / seconds
        if let fault = made.fault { outcome.faults.append(fault) }
        let slots = after.snapshot.slots.since(before.snapshot.slots)
        if slots.gaps > 0 { outcome.faults.append("the canary lost \(slots.gaps) packets") }
        let wrong =
            slots.undecryptable + slots.duplicates + slots.discontinuities
            + slots.resumptions
        let unsignalledPackets =
            after.snapshot.unsignalledPackets - before.snapshot.unsignalledPackets
        if wrong + unsignalledPackets > 0 {
            outcome.faults.append(
                "the canary got \(wrong + unsignalledPackets) packets that it should not"
            )
        }
        keep(outcome)
    }
}

extension Session {
    /// Interval between an attacker's turns.
    private static let turn = Duration.milliseconds(5)

    /// Makes all clients attack until `end`; returns the number of datagrams sent.
    fileprivate func attack(
        _ attack: Attack,
        victims: [UInt32],
        until end: ContinuousClock.Instant
    ) async throws -> Int {
        var sent = 0
        var next = ContinuousClock.now
        while next < end {
            sent += await engine.perform { $0.attack(attack, victims: victims) }
            next = max(next + Self.turn, .now)
            try await Task.sleep(until: next, clock: .continuous)
        }
        return sent
    }

    /// Joins clients whose certificate does not match their fingerprint.
    fileprivate func joinWithWrongCertificates(
        until end: ContinuousClock.Instant
    ) async throws -> Bench.AttackResult {
        let room = RoomPlan.broadcast(.camera, viewers: 0, name: "pretended")
        try await populate([room], places: 10_000)
        var viewer = RoomPlan.broadcast(.camera, viewers: 1).participants[1]
        let others = try DTLSIdentity(profiles: [engine.settings.profile.srtp]).fingerprint
        var count = 0
        while ContinuousClock.now < end {
            viewer.name = "pretender-\(count)"
            try await join(room.name, viewer, fingerprint: others)
            count += 1
            try await Task.sleep(for: .milliseconds(20))
        }
        try await Task.sleep(for: .seconds(1))
        let connected = await engine.perform { $0.connected }
        try await close(room)
        // The publisher of the room has a valid certificate.
        let fault = connected > 1 ? "\(connected - 1) of them got in" : nil
        return Bench.AttackResult(count: count, fault: fault)
    }

    /// Creates rooms and closes them at random moments, a few at a time; returns how many.
    ///
    /// Every call gets a reply: late ones are refused.
    fileprivate func closeEarly(until end: ContinuousClock.Instant) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    var count = 0
                    while ContinuousClock.now < end {
                        try await self.closeOne("short-\(lane)-\(count)")
                        count += 1
                    }
                    return count
                }
            }
            return try await group.reduce(0, +)
        }
    }

    private func closeOne(_ name: String) async throws {
        let room = RoomPlan.broadcast(.camera, viewers: 2, name: name)
        try await adapter.makeRoom(name, participants: room.participants.count)
        let coming = Task {
            for participant in room.participants {
                try await self.join(name, participant)
                if participant.media != nil { continue }
                try await self.watch(name, participant, keepsFrames: false)
            }
        }
        try await Task.sleep(for: .microseconds(.random(in: 0...40_000)))
        try await adapter.closeRoom(name)
        do {
            try await coming.value
        } catch ClientError.refused {
            // The room was closed before they joined.
        }
        await forget(room)
    }

    /// Joins, subscribes and removes clients in quick succession; returns how many.
    fileprivate func joinAndLeaveRepeatedly(until end: ContinuousClock.Instant) async throws -> Int
    {
        let room = RoomPlan.broadcast(.camera, viewers: 1, name: "restless")
        try await populate([room], places: 10)
        await beginMedia()
        var count = 0
        while ContinuousClock.now < end {
            var viewer = room.participants[1]
            viewer.name = "viewer-\(count)"
            if count > 0 {
                try await join(room.name, viewer)
                try await watch(room.name, viewer, keepsFrames: false)
                try await awaitConnected()
            }
            try await Task.sleep(for: .milliseconds(50))
            try await leave(room.name, viewer.name)
            count += 1
        }
        try await close(RoomPlan(name: room.name, participants: [room.participants[0]]))
        return count
    }
}
