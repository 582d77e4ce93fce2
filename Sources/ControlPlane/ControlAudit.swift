import Rooms
import WorkerInterface

// What simulators and fuzzers may look at: whether anything is left, and which fences are awaited.

extension ControlPlane {
    /// The workers whose fence an operation still awaits, in order.
    package func workersAwaited(atFence epoch: UInt64) -> [Int] {
        operations[epoch]?.waiting.sorted() ?? []
    }

    /// What the control plane still holds of rooms and calls, in words; empty: nothing.
    package var leftovers: [String] {
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
