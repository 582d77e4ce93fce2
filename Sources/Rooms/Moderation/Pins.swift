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
        let stranger = ids.first { participants[$0]?.admitted != true }
        guard stranger == nil, !ids.isEmpty else {
            throw CallError(
                code: 5126,
                reason: "no-such-participant",
                message: "no participant \"\(stranger ?? "")\" to \(on ? "pin" : "unpin")"
            )
        }
        var wanted = pins
        if on {
            for id in ids where !wanted.contains(id) { wanted.append(id) }
        } else {
            wanted.removeAll(where: ids.contains)
        }
        guard wanted.count <= pinLimit || wanted.count <= pins.count else {
            throw CallError(
                code: 5126,
                reason: "pin-limit",
                message: "at most \(pinLimit) participants can be pinned",
                details: ["limit": .text("maxActiveTalkers - 1"), "value": .number(pinLimit)]
            )
        }
        guard wanted != pins else { return }
        set(pins: wanted)
        transaction.announce(.pinsChanged(pins, by: actor), to: .everyone)
    }

    mutating func unpin(_ id: String, _ transaction: inout RoomTransaction) {
        guard pins.contains(id) else { return }
        set(pins: pins.filter { $0 != id })
        transaction.announce(.pinsChanged(pins, by: nil), to: .everyone)
    }

    /// Removes the newest pins that exceed the limit of new settings.
    mutating func trimPins(by actor: String?, _ transaction: inout RoomTransaction) {
        guard pins.count > pinLimit else { return }
        set(pins: Array(pins.prefix(pinLimit)))
        transaction.announce(.pinsChanged(pins, by: actor), to: .everyone)
    }

    private mutating func set(pins: [String]) {
        moderation.pins = pins
        speakers.isStale = true
    }

    /// Maximum number of pins; one list entry stays free for a speaker.
    private var pinLimit: Int { max(0, settings.maxActiveTalkers - 1) }
}
