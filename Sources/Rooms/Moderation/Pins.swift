// Pins: participants that stay on every active-speaker list.

extension Room {
    /// Pins or unpins participants; those already in that state are ignored.
    mutating func pin(
        _ ids: [String],
        _ on: Bool,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(
            actor,
            may: .pin,
            orElse: .seed(5003, "\(on ? "pinning" : "unpinning") needs the permission pin")
        )
        // EnableX answers a list of nobody as one that names somebody unknown.
        guard !ids.isEmpty else { throw .noSuchTarget("", code: 5126) }
        for id in ids {
            guard let participant = participants[id] else { throw .noSuchTarget(id, code: 5126) }
            guard participant.admitted else { throw .awaitsApproval(5126, id) }
        }
        var wanted = pins
        if on {
            for id in ids where !wanted.contains(id) { wanted.append(id) }
        } else {
            wanted.removeAll(where: ids.contains)
        }
        if wanted.count > pins.count { try checkPinLimits(wanted.count) }
        guard wanted != pins else { return }
        set(pins: wanted)
        transaction.announce(.pinsChanged(pins, by: actor), to: .everyone)
    }

    private func checkPinLimits(_ count: Int) throws(CallError) {
        guard !settings.strictPins || count <= strictPinLimit else {
            throw CallError(
                code: 5126,
                reason: "pin-limit",
                message: "at most \(strictPinLimit) participants can be pinned",
                details: [
                    "limit": .text("maxActiveTalkers - 1"), "value": .number(strictPinLimit),
                ]
            )
        }
        guard count <= Self.pinLimit else {
            throw .limitReached("pins", Self.pinLimit)
        }
    }

    mutating func unpin(_ id: String, _ transaction: inout RoomTransaction) {
        guard pins.contains(id) else { return }
        set(pins: pins.filter { $0 != id })
        transaction.announce(.pinsChanged(pins, by: transaction.actor), to: .everyone)
    }

    /// Removes the newest pins that exceed the limit of new settings.
    mutating func trimPins(by actor: String?, _ transaction: inout RoomTransaction) {
        guard settings.strictPins, pins.count > strictPinLimit else { return }
        set(pins: Array(pins.prefix(strictPinLimit)))
        transaction.announce(.pinsChanged(pins, by: actor), to: .everyone)
    }

    private mutating func set(pins: [String]) {
        moderation.pins = pins
        speakers.isStale = true
    }

    /// Maximum number of pins in a room with `strictPins`; one list entry stays free for a speaker.
    private var strictPinLimit: Int { max(0, settings.maxActiveTalkers - 1) }

    /// Length of the active-speaker lists.
    ///
    /// More pins than a strict room would take make them longer, and one entry stays free here too.
    var speakerLimit: Int {
        settings.strictPins
            ? settings.maxActiveTalkers : max(settings.maxActiveTalkers, pins.count + 1)
    }
}
