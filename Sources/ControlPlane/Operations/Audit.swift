import Rooms
import WorkerInterface

// Checks for the simulator: entries left of ended rooms, and fences that are awaited.

extension ControlPlane {
    /// Workers whose fence an operation still awaits, in ascending order.
    package func workersAwaited(atFence epoch: UInt64) -> [Int] {
        operations[epoch]?.waiting.sorted() ?? []
    }

    /// Entries left of ended rooms and calls, in words; empty if there are none.
    package var leakedObjects: [String] {
        var left = rooms.keys.sorted().map { "room \($0)" }
        let tables = [
            ("operations", operations.count), ("owners", owners.count), ("reports", reports.count),
            ("explanations", explanations.count),
        ]
        left += tables.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }
        for (index, identifiers) in shared.identifiers.enumerated() {
            let handles =
                identifiers.transports.used + identifiers.publications.used
                + identifiers.slots.used
            if handles > 0 { left.append("\(handles) handles of worker \(index)") }
        }
        return left
    }
}
