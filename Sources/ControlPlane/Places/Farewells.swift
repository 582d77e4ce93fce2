import JSON
package import RTP
import Rooms
import WorkerInterface

// Rooms that this node has let go, until nothing of them is left at other nodes.

/// Words to the nodes of a room that was let go.
struct Farewell {
    var due: Instant
    var room: String
    /// Commands that the close of the room would have been, by the places at other nodes.
    var commands: [Int: [WorkerCommand]]
    /// Whether no home takes anything over any longer.
    var isLast: Bool

    /// Times after which what is left of a room that was let go ends at other nodes: first what no
    /// home has asked about, before one counts a node as silent (`Adoption.patienceMilliseconds`);
    /// then the rest.
    fileprivate static let milliseconds: [Int64] = [4_000, 15_000]
}

extension ControlPlane {
    /// Ends this node's copy of a room that another home takes over from here.
    ///
    /// Those at other nodes stay: that home goes on with them. What is left of them ends later.
    package mutating func handOver(_ name: String, at now: Instant) {
        guard let first = shared.remote?.first else { return }
        let dues = Farewell.milliseconds.map { now.advanced(milliseconds: $0) }
        places?.moves.settled = dues.first
        let commands = abandon(name, keepingWorkersFrom: first, at: now)
        guard !commands.isEmpty else { return }
        if let first = dues.first { endDetours(of: commands, by: first) }
        for due in dues {
            let farewell = Farewell(
                due: due,
                room: name,
                commands: commands,
                isLast: due == dues.last
            )
            places?.moves.farewells.append(farewell)
        }
        places?.moves.farewells.sort { $0.due < $1.due }
    }

    /// Leaves those at other nodes alone, as their room goes on here after all.
    mutating func withdrawFarewells(of room: String) {
        places?.moves.farewells.removeAll { $0.room == room && !$0.isLast }
    }

    /// Tells other nodes what is due.
    mutating func sayFarewells(at now: Instant) {
        while let farewell = places?.moves.farewells.first, farewell.due <= now {
            places?.moves.farewells.removeFirst()
            for (worker, commands) in farewell.commands.sorted(by: { $0.key < $1.key }) {
                guard !farewell.isLast else {
                    tell(worker, commands)
                    continue
                }
                guard let node = shared.remote?.name(of: worker)?.node else { continue }
                let end = AdoptionEnd(
                    room: farewell.room,
                    former: FormerHome(node: setup.node ?? "", boot: setup.bootID),
                    worker: nil,
                    formerPlace: worker
                )
                output.append(.place(node: node, asHome: true, JSON.compact(end)))
            }
        }
    }
}
