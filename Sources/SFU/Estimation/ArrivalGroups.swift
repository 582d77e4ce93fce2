/// Grouping of packets sent within 5 ms, for inter-group delay (draft-ietf-rmcat-gcc-02 §5.2).
///
/// A single packet's delay is dominated by scheduling noise at sender and receiver; a group's is
/// less so.
struct ArrivalGroups {
    /// Time between the last packets of two groups, in nanoseconds.
    struct Step: Equatable {
        var sent: Int64
        var arrived: Int64
        /// Arrival of the later group's last packet, on the subscriber's clock.
        var completed: Int64
    }

    private struct Group {
        var firstSent: Int64
        var lastSent: Int64
        var firstArrived: Int64
        var lastArrived: Int64
    }

    private static let length: Int64 = 5_000_000
    private static let longestBurst: Int64 = 100_000_000
    /// Consecutive groups out of order after which the subscriber's clock is assumed to have
    /// changed.
    private static let patience = 3

    private var previous: Group?
    private var current: Group?
    private var disorder = 0

    /// Adds an arrived packet; returns the step between two complete groups when a third begins.
    mutating func add(sent: Int64, arrived: Int64) -> Step? {
        guard var group = current else {
            current = Self.group(sent, arrived)
            return nil
        }
        // A packet sent before this group belongs to an older one, which is already evaluated.
        guard sent >= group.firstSent else { return nil }
        if sent &- group.firstSent <= Self.length || Self.isBurst(group, sent, arrived) {
            group.lastSent = max(group.lastSent, sent)
            group.lastArrived = max(group.lastArrived, arrived)
            current = group
            return nil
        }
        defer {
            if current != nil {
                previous = group
                current = Self.group(sent, arrived)
            }
        }
        guard let before = previous else { return nil }
        let step = Step(
            sent: group.lastSent &- before.lastSent,
            arrived: group.lastArrived &- before.lastArrived,
            completed: group.lastArrived
        )
        guard step.arrived >= 0 else {
            disorder &+= 1
            if disorder >= Self.patience { reset() }
            return nil
        }
        disorder = 0
        return step
    }

    mutating func reset() { self = ArrivalGroups() }

    private static func group(_ sent: Int64, _ arrived: Int64) -> Group {
        Group(firstSent: sent, lastSent: sent, firstArrived: arrived, lastArrived: arrived)
    }

    /// Whether a packet sent after the group arrived in a burst with it.
    ///
    /// Something on the path, most often Wi-Fi, held the packets and released them together.
    private static func isBurst(_ group: Group, _ sent: Int64, _ arrived: Int64) -> Bool {
        let gap = arrived &- group.lastArrived
        let stretch = gap &- (sent &- group.lastSent)
        return stretch < 0 && gap <= length && arrived &- group.firstArrived < longestBurst
    }
}
