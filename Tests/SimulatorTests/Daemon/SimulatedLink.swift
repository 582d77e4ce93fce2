import Links
import RTP
import SFU
import TestSupport

@testable import WorkerInterface

/// A link thread without its thread and its socket.
final class SimulatedLink {
    var media: LinkMedia
    var mailbox: [WorkerCommand] = []
    /// Datagrams in the socket's receive queue.
    var arrived: [[UInt8]] = []
    var nextTurn: Instant

    init(_ threads: RelayMesh, _ identity: DTLSIdentity, seed: UInt64, at now: Instant) {
        let core = Core(limits: .default, seed: seed, identity: identity, engine: .best)
        media = LinkMedia(core: core, port: threads.port(of: threads.workers - 1), at: now)
        nextTurn = now
    }

    func run(at now: Instant) -> [LinkTransmit] {
        let (commands, datagrams) = (mailbox, arrived)
        (mailbox, arrived) = ([], [])
        for command in commands { media.apply(command, at: now) }
        for datagram in datagrams { media.receive(datagram, at: now) }
        _ = media.run(at: now)
        return media.takeTransmits()
    }
}

/// Ways between nodes, of datagrams and of messages about participants.
struct SimulatedPaths {
    /// Share of datagrams that are lost.
    var lossPercent = 0
    /// Quarters of a millisecond that a datagram or a message takes.
    var delay: ClosedRange<Int64> = 1...16
    /// Pairs of nodes whose datagrams do not come through.
    var severed: Set<Set<String>> = []
    private var flights: [(due: Instant, from: String, to: Address, bytes: [UInt8])] = []
    /// Arrival of the last message of each pair.
    private var lastMail: [[String]: Instant] = [:]
    /// Keys that were given to pairs of nodes.
    private var lastKey: UInt8 = 0

    private func arrival(_ now: Instant, _ random: inout SeededRandom) -> Instant {
        now.advanced(nanoseconds: Int64.random(in: delay, using: &random) * 250_000)
    }

    mutating func launch(
        _ transmits: [LinkTransmit],
        from node: String,
        at now: Instant,
        _ random: inout SeededRandom
    ) {
        for transmit in transmits where Int.random(in: 0..<100, using: &random) >= lossPercent {
            let due = arrival(now, &random)
            flights.append((due, node, transmit.address, transmit.bytes))
        }
    }

    /// Delivers the datagrams that have arrived.
    mutating func land(at nodes: [SimulatedNode], _ now: Instant) {
        guard flights.contains(where: { $0.due <= now }) else { return }
        for flight in flights where flight.due <= now {
            guard let node = nodes.first(where: { $0.address == flight.to }),
                !severed.contains([flight.from, node.name])
            else { continue }
            node.link?.arrived.append(flight.bytes)
        }
        flights.removeAll { $0.due <= now }
    }

    /// Returns when a message arrives; they stay in order.
    mutating func mailDue(
        _ from: String,
        _ to: String,
        at now: Instant,
        _ random: inout SeededRandom
    ) -> Instant {
        let due = max(arrival(now, &random), lastMail[[from, to]] ?? now)
        lastMail[[from, to]] = due
        return due
    }

    /// Gives two nodes keys for their datagrams.
    mutating func connect(_ one: SimulatedNode, _ other: SimulatedNode) {
        let (there, back) = (direction(), direction())
        one.link?.mailbox.append(
            .link(.connect(other.name, other.address, LinkKeys(outgoing: there, incoming: back)))
        )
        other.link?.mailbox.append(
            .link(.connect(one.name, one.address, LinkKeys(outgoing: back, incoming: there)))
        )
    }

    private mutating func direction() -> LinkKeys.Direction {
        lastKey += 1
        return LinkKeys.Direction(
            association: UInt64(lastKey),
            key: [UInt8](repeating: lastKey, count: 32),
            vector: [UInt8](repeating: lastKey &+ 7, count: 12)
        )
    }
}
