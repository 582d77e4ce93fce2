import RTP
import WorkerInterface

// Leases.
extension ControlPlane {
    /// Lets a node's leases go on.
    mutating func grant(_ node: String) {
        guard places?.nodes[node]?.isDenied == true else { return }
        places?.nodes[node]?.isDenied = false
        places?.nodes[node]?.deniedAt = nil
        places?.nodes[node]?.denial = nil
        output.append(.commands(worker: linkThread, [.link(.grant(node, true))]))
    }

    /// Withholds the leases of nodes that do not pass a fence, and goes on without them when their
    /// last leases are over.
    mutating func expirePlaces(at now: Instant) {
        guard let deadline = places?.deadline, deadline <= now else { return }
        expireAdoptions(at: now)
        expireMoves(at: now)
        expireOrphans(at: now)
        expireHearing(at: now)
        expireDetours(at: now)
        for name in places?.nodes.keys.sorted() ?? [] {
            // An operation may wait for one node and then for the next.
            guard let node = places?.nodes[name], let due = node.due, due <= now else { continue }
            if node.isDenied { goOn(without: name, node, at: now) } else { deny(name) }
            if node.returning != nil { giveUp(name, at: now) }
        }
    }

    /// Withholds the leases of a node that is lost, until another life or session of it has passed
    /// a fence.
    mutating func leave(_ node: String) {
        guard places?.nodes[node]?.isConnected == true else { return }
        places?.nodes[node]?.isConnected = false
        places?.nodes[node]?.late = [:]
        places?.nodes[node]?.isLeaving = true
        if places?.nodes[node]?.isDenied == false { deny(node) }
    }

    mutating func deny(_ node: String) {
        guard var places else { return }
        places.lastDenial += 1
        let fence = Places.firstDenial + places.lastDenial
        places.nodes[node]?.isDenied = true
        places.nodes[node]?.denial = fence
        self.places = places
        let order = WorkerCommand.link(.grant(node, false))
        output.append(.commands(worker: linkThread, [order, .fence(epoch: fence)]))
    }

    /// Notes that the link thread withholds a node's leases from now on; returns whether the fence
    /// was about that.
    mutating func noteDenial(_ fence: UInt64, at passed: Instant) -> Bool {
        guard fence >= Places.firstDenial, places != nil else { return false }
        for (name, node) in places?.nodes ?? [:] where node.denial == fence {
            places?.nodes[name]?.deniedAt = passed
        }
        return true
    }

    private mutating func goOn(without name: String, _ node: Places.Node, at now: Instant) {
        let fields = [("node", name)]
        output.append(.log(.warning, "node does not answer", fields))
        // Fences that come meanwhile are given up at once, until it answers.
        places?.nodes[name]?.giveUp()
        for (epoch, workers) in node.awaited.sorted(by: { $0.key < $1.key }) {
            for worker in workers.keys.sorted() where operations.awaits(epoch, from: worker) {
                operations.noteSilence(of: name, epoch)
                fenced(epoch, by: worker, at: now, 0)
            }
        }
    }
}
