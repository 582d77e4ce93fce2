package import RTP

// Lifetimes: a room that stays empty ends, a participant that stays disconnected leaves, and a host
// that does not come back loses its place.

extension Room {
    /// Times from which an empty room and disconnected participants are counted down.
    struct Absences: Sendable, Codable {
        /// Keys of what is saved: the losses are those of the participants.
        private enum CodingKeys: CodingKey { case emptySince }

        /// Loss of a participant's last transport.
        struct Loss: Hashable, Sendable, Codable {
            var participant: String
            var at: Instant
        }

        /// Time since which nobody is in the room; `nil` while somebody is.
        var emptySince: Instant?
        /// Losses in the order in which they happened, after `passed` that no longer count.
        ///
        /// All wait equally long, so the first is always the next one due.
        private var losses: [Loss] = []
        private var passed = 0

        init(emptySince: Instant?) { self.emptySince = emptySince }

        var first: Loss? { passed < losses.count ? losses[passed] : nil }

        /// Number of entries, with those that no longer count.
        var count: Int { losses.count }
        /// Losses in order, among them those of participants that have returned or left.
        var noted: ArraySlice<Loss> { losses[passed...] }

        mutating func add(_ loss: Loss) { losses.append(loss) }

        mutating func keepOnly(_ losses: [Loss]) { (self.losses, passed) = (losses, 0) }

        mutating func removeFirst() {
            passed += 1
            // Compact rarely, because all remaining entries move.
            guard passed > 32, passed > losses.count / 2 else { return }
            losses.removeFirst(passed)
            passed = 0
        }
    }

    /// Time of the next `expire` with work to do, if any.
    package var deadline: Instant? {
        guard !isClosed else { return nil }
        let deadlines = [
            speakers.due, moderation.roleRequests.deadline, emptyDeadline, lossDeadline,
            expectationDeadline, automaticRecordingDeadline,
        ]
        return deadlines.compactMap(\.self).min()
    }

    private var emptyDeadline: Instant? { deadline(absences.emptySince, settings.emptySeconds) }

    private var lossDeadline: Instant? {
        deadline(absences.first?.at, settings.disconnectedSeconds)
    }

    /// Time that a host keeps its place without media where nobody leaves for being disconnected.
    private static let expectationSeconds = 120

    private var expectationDeadline: Instant? {
        deadline(
            moderation.hosts.firstExpectation?.since,
            settings.disconnectedSeconds ?? Self.expectationSeconds
        )
    }

    private func deadline(_ start: Instant?, _ seconds: Int?) -> Instant? {
        guard let start, let seconds else { return nil }
        return start.advanced(milliseconds: Int64(seconds) * 1_000)
    }

    /// Notes that a participant has lost its last transport.
    mutating func noteLoss(of id: String, at now: Instant) {
        guard participants[id]?.connection == .disconnected else { return }
        guard participants[id]?.lost != now else { return }
        participants[id]?.lost = now
        absences.add(Absences.Loss(participant: id, at: now))
        // Behind one who stays away for long, or for ever, others may come and go.
        guard absences.count > Self.spareLosses + 2 * participants.count else { return }
        absences.keepOnly(absences.noted.filter { participants[$0.participant]?.lost == $0.at })
    }

    /// Losses that no longer count and may be kept, besides as many as there are participants.
    private static let spareLosses = 32

    /// Forgets the losses of participants that have returned or left, and notes whether the room is
    /// empty.
    mutating func reconcileAbsences(at now: Instant) {
        while let loss = absences.first, participants[loss.participant]?.lost != loss.at {
            absences.removeFirst()
        }
        absences.emptySince = participants.isEmpty ? absences.emptySince ?? now : nil
    }

    /// Removes participants that have been disconnected for too long, and closes a room that has
    /// been empty for too long.
    mutating func endAbsences(_ transaction: inout RoomTransaction) {
        guard !isClosed else { return }
        let now = transaction.shared.now
        while let loss = absences.first, let due = lossDeadline, due <= now {
            absences.removeFirst()
            guard let participant = participants[loss.participant], participant.lost == loss.at
            else { continue }
            remove(participant.id, EndReason.disconnected, &transaction)
            reconcileHosts(&transaction)
            transaction.announce(
                .left(participant, reason: EndReason.disconnected),
                to: audience(of: participant)
            )
        }
        if let due = emptyDeadline, due <= now {
            close(EndReason.empty, by: nil, &transaction)
        }
    }

    /// Frees the places of hosts that have not offered for too long since they were lost or taken
    /// over.
    mutating func endExpectations(_ transaction: inout RoomTransaction) {
        guard !isClosed else { return }
        while let expectation = moderation.hosts.firstExpectation, let due = expectationDeadline,
            due <= transaction.shared.now
        {
            moderation.hosts.stopExpecting(expectation.host)
            reconcile(publisher: expectation.host, ending: EndReason.hostPlace, &transaction)
        }
    }
}
