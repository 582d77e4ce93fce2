import RTP

@testable import SFU
@testable import sfud

// The bounds of what transports make a worker keep and do.
extension World {
    /// Holds every worker's tables against their limits.
    func checkBounds() {
        for worker in workers {
            if let text = worker.core.excess {
                violate(.bounds, "worker \(worker.index) keeps \(text)")
            }
            if worker.events.count > Self.eventLimit {
                violate(.bounds, "\(worker.events.count) events of worker \(worker.index) wait")
            }
        }
    }

    private static let eventLimit = 10_000
}

extension Core {
    /// The first table that has more than its limits allow, in words.
    var excess: String? {
        let count = transports.count
        var tables: [(name: String, count: Int, limit: Int)] = [
            ("paths", paths.count, count * limits.pathsPerTransport),
            // One of before the last restart of ICE.
            ("fragments", fragments.count, 2 * count),
            ("packets", pool.used, limits.packetPool + 1),
            ("packets for new listeners", replays.count, 65_536),
        ]
        for index in 0..<transports.capacity where transports.isOccupied(index) {
            tables.append(
                (
                    "paths of a transport", transports[index].ice.paths.count,
                    limits.pathsPerTransport
                )
            )
            tables.append(
                (
                    "streams of a transport", transports[index].streams.count,
                    limits.streamsPerTransport
                )
            )
        }
        let excess = tables.first { $0.count > $0.limit }
        return excess.map { "\($0.count) \($0.name), more than \($0.limit)" }
    }
}
