import RTP
import TestSupport

@testable import ControlPlane
@testable import Simulator
@testable import WorkerInterface

// Processes of nodes that die, and those that go on after them.
extension SimulatedDaemon {
    func isApart(_ one: SimulatedNode, _ other: SimulatedNode) -> Bool {
        one.apart.contains(other.name) || other.apart.contains(one.name)
    }

    /// Kills a node's process: what it has not sent is lost, and its links break.
    func kill(_ node: SimulatedNode) {
        node.isDead = true
        node.lines = []
        for other in nodes where other.index != node.index {
            other.mail.removeAll { $0.from == node.name }
            node.apart.insert(other.name)
            // A living one knows sessions with the process that has died.
            guard !other.isDead else { continue }
            if other.index == home.index { other.disowned.insert(node.name) }
            if node.index == home.index { other.returning.insert(node.name) }
        }
        (node.disowned, node.returning) = ([], [])
    }

    /// Lets another process go on after one that was killed; its links come later.
    func begin(_ node: SimulatedNode) {
        let unixTime = 1_700_000_000 + Double(now.nanoseconds) / 1e9
        node.beginAgain(identity: identity, at: now, unixTime: unixTime, random: &random)
        takeOutput(of: node)
        node.resume()
    }

    /// Makes the links of a process again, one after the other.
    func reunite(_ node: SimulatedNode) {
        for other in nodes where !other.isDead && isApart(node, other) {
            node.apart.remove(other.name)
            other.apart.remove(node.name)
            meet(node, other)
            for (one, another) in [(node, other), (other, node)]
            where one.disowned.remove(another.name) != nil {
                one.plane.disownPlaces(at: another.name, at: now)
            }
        }
    }

    /// Lets the others count a home that was killed as lost.
    func loseHome() {
        for other in nodes where !other.isDead {
            other.returning.remove(home.name)
            other.link?.mailbox.append(.link(.prolong(home: home.name)))
            other.plane.orphanGuests(of: home.name, home.setup.bootID, at: now)
            other.plane.losePlaces(at: home.name, at: now)
            takeOutput(of: other)
        }
    }

    /// Lets a node go on with the room of a home that was lost, by what that has journaled.
    func takeOver(_ room: String, by heir: SimulatedNode) {
        let unixTime = 1_700_000_000 + Double(now.nanoseconds) / 1e9
        let records = home.journaled.filter { $0.key.split(separator: "/")[1] == room }
        let journal = JournaledRoom(
            name: room,
            of: home.name,
            home.setup.bootID,
            records: records,
            instant: now,
            unixTime: unixTime
        )
        heir.plane.adopt(journal, at: now, unixTime: unixTime)
        takeOutput(of: heir)
        home = heir
    }

    /// Lets another life of a lost node begin.
    func beginAfresh(_ node: SimulatedNode) {
        node.beginAfresh(identity: identity, at: now, random: &random)
        takeOutput(of: node)
        node.resume()
        reunite(node)
    }
}
