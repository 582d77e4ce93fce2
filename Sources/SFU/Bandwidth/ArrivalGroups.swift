/// Packets that left within 5 ms, taken together: what their path did to the time between groups
/// (draft-ietf-rmcat-gcc-02 §5.2).
///
/// A single packet's delay is noise of the sender's loop and the receiver's; a group's is less so.
struct ArrivalGroups {
    /// What lies between the last packets of two groups, in nanoseconds.
    struct Step: Equatable {
        var sent: Int64
        var arrived: Int64
        /// When the later group was complete, on the remote clock.
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
    /// Groups in a row that came out of order, after which the remote clock is thought changed.
    private static let patience = 3

    private var previous: Group?
    private var current: Group?
    private var disorder = 0

    /// Adds an arrived packet; gives the step between two groups when a third begins.
    mutating func add(sent: Int64, arrived: Int64) -> Step? {
        guard var group = current else {
            current = Self.group(sent, arrived)
            return nil
        }
        // What left earlier than its group belongs to an older one, which has been judged.
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

    /// Whether a packet came on the heels of the group though it left later: something on the
    /// way (Wi-Fi, most often) held them and let them go together.
    private static func isBurst(_ group: Group, _ sent: Int64, _ arrived: Int64) -> Bool {
        let gap = arrived &- group.lastArrived
        let stretch = gap &- (sent &- group.lastSent)
        return stretch < 0 && gap <= length && arrived &- group.firstArrived < longestBurst
    }
}
