@testable import SFU

extension Core {
    /// What a worker still has that rooms had needed, in words; empty: nothing.
    var leftovers: String {
        let counts = [
            ("transports", transports.count), ("publications", publications.count),
            ("destinations", destinations.count), ("slots", slots.count),
            ("records", slotRecords.count), ("encodings", encodings.count),
            ("fragments", fragments.count), ("mirrors", mirrors.count),
            ("paths", paths.count),
            // One is kept for RTCP.
            ("packets", pool.used - 1),
        ]
        return counts.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    }
}
