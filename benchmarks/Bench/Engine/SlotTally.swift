/// What slots have received, and what was wrong with it.
struct SlotTally: Sendable {
    /// Packets, each counted once, and their bytes as datagrams.
    var received: UInt64 = 0
    var bytes: UInt64 = 0
    /// Packets that the publishers have sent on what the slots carry.
    var owed: UInt64 = 0
    /// Numbers that were passed over and have not come.
    var gaps: UInt64 = 0
    /// Packets after the last that came.
    var tail: UInt64 = 0
    var duplicates: UInt64 = 0
    /// Packets that came after a later one.
    var late: UInt64 = 0
    var undecryptable: UInt64 = 0
    var decrypted: UInt64 = 0
    /// Packets whose numbers or contents do not go on from what came before.
    var discontinuities: UInt64 = 0
    /// Times that a picture went on with a keyframe, and the packets that were left out before.
    var resumptions: UInt64 = 0
    var leftOut: UInt64 = 0
    /// Changes to another layer of the publisher's simulcast.
    var switches: UInt64 = 0
    /// Padding without a payload.
    var padding: UInt64 = 0
    /// Slots that never received anything.
    var silent: UInt64 = 0
    /// The most packets that one slot received within a millisecond.
    var burst: UInt64 = 0

    /// Packets that have not come: those still under way too.
    var missing: UInt64 { gaps + tail + leftOut }

    static func += (sum: inout Self, other: Self) {
        sum.received += other.received
        sum.bytes += other.bytes
        sum.owed += other.owed
        sum.gaps += other.gaps
        sum.tail += other.tail
        sum.duplicates += other.duplicates
        sum.late += other.late
        sum.undecryptable += other.undecryptable
        sum.decrypted += other.decrypted
        sum.discontinuities += other.discontinuities
        sum.resumptions += other.resumptions
        sum.leftOut += other.leftOut
        sum.switches += other.switches
        sum.padding += other.padding
        sum.silent += other.silent
        sum.burst = max(sum.burst, other.burst)
    }

    /// What was counted since `earlier`; gaps may have been filled meanwhile.
    func since(_ earlier: Self) -> Self {
        var rest = self
        rest.received -= min(rest.received, earlier.received)
        rest.bytes -= min(rest.bytes, earlier.bytes)
        rest.owed -= min(rest.owed, earlier.owed)
        rest.gaps -= min(rest.gaps, earlier.gaps)
        rest.tail -= min(rest.tail, earlier.tail)
        rest.duplicates -= min(rest.duplicates, earlier.duplicates)
        rest.late -= min(rest.late, earlier.late)
        rest.undecryptable -= min(rest.undecryptable, earlier.undecryptable)
        rest.decrypted -= min(rest.decrypted, earlier.decrypted)
        rest.discontinuities -= min(rest.discontinuities, earlier.discontinuities)
        rest.resumptions -= min(rest.resumptions, earlier.resumptions)
        rest.leftOut -= min(rest.leftOut, earlier.leftOut)
        rest.switches -= min(rest.switches, earlier.switches)
        rest.padding -= min(rest.padding, earlier.padding)
        rest.silent -= min(rest.silent, earlier.silent)
        return rest
    }
}
