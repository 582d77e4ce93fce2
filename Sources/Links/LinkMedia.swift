package import RTP
package import SFU
package import WorkerInterface

/// A datagram for another node.
package struct LinkTransmit: Hashable, Sendable {
    package var address: Address
    package var bytes: [UInt8]
}

/// Media of rooms that span nodes: what goes to the link threads of other nodes, and what comes
/// from there.
///
/// Sans-I/O: datagrams, ring messages, commands and the time go in; datagrams, ring messages,
/// events and the ends of leases come out. A core does what is the same as in a worker: mirrors of
/// what goes out, homes of what comes in, histories, gates, keyframe requests.
package struct LinkMedia: ~Copyable {
    /// Another node that datagrams are exchanged with.
    struct Peer {
        var address: Address
        var sealer: LinkSealer
        var association: UInt64
        var former: UInt64?
        let path: LinkPath
        /// Records of the next datagram, and bytes of them that are video.
        var records: [UInt8] = []
        var videoBytes = 0
        /// Round trip in nanoseconds; `nil` before the first.
        var roundTrip: Int64?
        /// Sending time of the last beat that was echoed.
        var echoed: Instant?
        /// Whether that echo granted a lease.
        var isGranting = false
        var isAlive = false

        /// End of the lease that its last echo granted.
        var leaseEnd: Instant? {
            guard isGranting else { return nil }
            return echoed?.advanced(milliseconds: LinkMedia.leaseMilliseconds)
        }
    }

    /// A publication that goes to other nodes.
    struct Sending {
        struct Subscriber {
            var handle: PublicationID
            var revision: UInt16
            var encodings: UInt8
            var heard: Instant
            /// Encodings that the path does not carry, and the time up to which that is repeated.
            var withheld: UInt8 = 0
            var repeatedUntil: Instant?

            var carried: UInt8 { encodings & ~withheld }
        }

        /// Its names, by this home and by those before.
        var names: [StreamName] = []
        /// Nodes that may have it.
        var nodes: Set<String>
        var subscribers: [String: Subscriber] = [:]

        var wanted: UInt8 { subscribers.values.reduce(0) { $0 | $1.encodings } }
        var carried: UInt8 { subscribers.values.reduce(0) { $0 | $1.carried } }

        /// Whether a node may have it: also the home, by way of which it may go to another node.
        func mayGo(to node: String) -> Bool {
            nodes.contains(node) || names.last?.isGiven(by: node) == true
        }
    }

    /// A publication that comes from another node.
    struct Receiving {
        var name: StreamName
        var node: String
        /// Node that it came from before, wanted until it has come from the present one, and heard
        /// until what was on its way then has come.
        var former: (node: String, until: Instant?)?
        var isSound: Bool
        var revision: UInt16 = 0
        /// Encodings that the workers here want.
        var own: UInt8 = 0
        /// The same, and those that nodes want to which it goes on.
        var encodings: UInt8 = 0
        var isOpen = false
        /// Whether a packet of the present revision has come.
        var isHeard = false
        var nextWant: Instant
        /// Encodings that the path does not carry, and the time when that was last heard.
        var withheld: UInt8 = 0
        var withheldHeard: Instant?

        /// Whether it may come from a node.
        func comes(from other: String, at now: Instant) -> Bool {
            guard other != node else { return true }
            guard let former, former.node == other else { return false }
            return former.until.map { now < $0 } ?? true
        }
    }

    struct Subscription: Hashable {
        var node: String
        var handle: PublicationID
    }

    var core: Core
    var port: RelayPort
    var peers: [String: Peer] = [:]
    var openers: [UInt64: LinkOpener] = [:]
    var sending: [PublicationID: Sending] = [:]
    var names: [StreamName: PublicationID] = [:]
    var subscriptions: [Subscription: PublicationID] = [:]
    var receiving: [PublicationID: Receiving] = [:]
    /// Numbers of this node's leases, by home.
    var leases: [String: Int] = [:]
    var denied: Set<String> = []
    var nextBeat: Instant
    package internal(set) var counters = LinkCounters()
    var transmits: [LinkTransmit] = []
    /// An encoded record on its way to a datagram; empty in between, its storage is kept.
    var scratch: [UInt8] = []
    var events: [WorkerEvent] = []
    var leaseEnds: [(home: Int, end: Instant)] = []
    var output = Batch(capacity: Core.batchCapacity)

    package init(core: consuming Core, port: consuming RelayPort, at now: Instant) {
        self.core = core
        self.core.beginEpochs(after: UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000))
        self.port = port
        nextBeat = now
    }

    /// Datagrams to send, in order.
    package mutating func takeTransmits() -> [LinkTransmit] {
        defer { transmits = [] }
        return transmits
    }

    package mutating func takeEvents() -> [WorkerEvent] {
        while let event = core.takeEvent() {
            if case .fenced = event { events.append(event) }
        }
        defer { events = [] }
        return events
    }

    /// New ends of this node's leases, by their numbers.
    package mutating func takeLeaseEnds() -> [(home: Int, end: Instant)] {
        defer { leaseEnds = [] }
        return leaseEnds
    }

    /// Time of the next `expire`.
    package func deadline(at now: Instant) -> Instant? {
        let beat = peers.isEmpty ? nil : nextBeat
        let wants = receiving.values.map(\.nextWant).min()
        let paths = peers.values.compactMap { $0.path.deadline(at: now) }.min()
        return [beat, wants, paths, core.deadline, core.linkedLossDeadline].compactMap(\.self).min()
    }

    /// Whether there is a message in a ring.
    package mutating func hasMessages() -> Bool { port.hasMessages() }

    /// Executes a command.
    package mutating func apply(_ command: WorkerCommand, at now: Instant) {
        switch command {
        case .gate(let id, let open):
            core.apply(command, at: now, into: &output)
            setGate(of: id, open: open, at: now)
            if !open { dropWaiting(of: id) }
        case .unmirror(let id):
            endSending(id, at: now)
            dropWaiting(of: id)
            core.apply(command, at: now, into: &output)
        case .link(let order): apply(order, at: now)
        case .mirror, .relay, .fence: core.apply(command, at: now, into: &output)
        case .configure, .close, .resume, .endResumption, .postponeResumption, .bind, .limit,
            .feature, .hold, .tap,
            .lease, .report, .reportTransports, .explain:
            break  // For transports, slots and taps; there are none here.
        }
    }

    mutating func apply(_ order: LinkOrder, at now: Instant) {
        switch order {
        case .send(let id, let name, let nodes): send(id, name, to: Set(nodes), at: now)
        case .receive(let configuration, let name, let node):
            let id = configuration.id
            core.addLinked(configuration, at: now)
            guard receiving[id] == nil else {
                receiving[id]?.name = name
                receiving[id]?.nextWant = now
                take(id, from: node, at: now)
                break
            }
            let isSound = configuration.kind == .audio
            receiving[id] = Receiving(name: name, node: node, isSound: isSound, nextWant: now)
        case .end(let id):
            endSending(id, at: now)
            leaveFormer(of: id, at: now)
            guard var ended = receiving.removeValue(forKey: id) else { break }
            ended.encodings = 0
            want(ended, as: id, at: now)
            core.removeLinked(id)
        case .want(let id, let encodings):
            receiving[id]?.own = encodings
            reviewWant(of: id, at: now)
        case .connect(let node, let address, let keys): connect(node, address, keys, at: now)
        case .disconnect(let node): disconnect(node)
        case .grant(let node, let isGranted):
            if isGranted { denied.remove(node) } else { denied.insert(node) }
        case .hold(let home, let lease):
            leases[home] = lease
            // The number may have been that of another home.
            let end = peers[home]?.leaseEnd ?? Instant(nanoseconds: 0)
            if let lease { leaseEnds.append((lease, end)) }
        case .prolong(let home):
            // A lease that is over stays so: the home may have gone on without this node.
            guard let lease = leases[home], let peer = peers[home], let echoed = peer.echoed,
                let end = peer.leaseEnd, end > now
            else { break }
            leaseEnds.append((lease, echoed.advanced(milliseconds: Self.prolongedMilliseconds)))
        }
        flushRecords(at: now)
    }

    mutating func connect(
        _ node: String,
        _ address: Address,
        _ keys: LinkKeys,
        at now: Instant
    ) {
        guard let sealer = LinkSealer(keys.outgoing),
            let opener = LinkOpener(keys.incoming, from: node)
        else { return }
        let old = peers[node]
        if let former = old?.former { openers[former] = nil }
        openers[keys.incoming.association] = opener
        var peer = Peer(
            address: address,
            sealer: sealer,
            association: keys.incoming.association,
            path: old?.path ?? LinkPath(at: now)
        )
        // The new counters begin again.
        peer.path.arrivals = LinkArrivals()
        // Datagrams under the last keys may still be on their way.
        peer.former = old?.association
        peer.roundTrip = old?.roundTrip
        peer.echoed = old?.echoed
        peer.isGranting = old?.isGranting ?? false
        peer.isAlive = old?.isAlive ?? false
        peers[node] = peer
        // Its process may be another one, which knows nothing of what was wanted.
        for (id, known) in receiving where known.node == node {
            receiving[id]?.isHeard = false
            receiving[id]?.nextWant = now
            core.expectAnyNumbering(of: id)
        }
    }

    mutating func disconnect(_ node: String) {
        guard let peer = peers.removeValue(forKey: node) else { return }
        openers[peer.association] = nil
        if let former = peer.former { openers[former] = nil }
        if peer.isAlive { events.append(.link(.media(node, isAlive: false))) }
    }
}

// Rounds.
extension LinkMedia {
    /// Moves packets between rings and datagrams, and does what is due.
    ///
    /// Returns the workers that have messages now.
    package mutating func run(at now: Instant) -> [Int] {
        flush(at: now)
        var rounds = 0
        while port.hasMessages(), rounds < Self.roundsAtOnce {
            rounds += 1
            _ = core.receive(from: &port, at: now)
            flush(at: now)
        }
        expire(at: now)
        flushRecords(at: now)
        var workers: [Int] = []
        for worker in 0..<port.workers where port.publish(to: worker) { workers.append(worker) }
        return workers
    }

    /// Passes the batch on, to the workers and to other nodes.
    mutating func flush(at now: Instant) {
        core.relay(into: &port, at: now)
        export(at: now)
        // There are no slots, so this only settles the batch.
        while core.flush(into: &output, at: now) { output.removeAll() }
        output.removeAll()
    }

    mutating func expire(at now: Instant) {
        for (id, position) in core.takeLinkedRequests() {
            guard let node = receiving[id]?.node else { continue }
            append(.keyframe(handle: id, position: UInt8(clamping: position)), to: node, at: now)
        }
        let (receiving, peers) = (receiving, peers)
        // A repetition may wait behind what fills the path; each further request would add to it.
        let losses = core.takeLinkedLosses(at: now) { id in
            guard let known = receiving[id] else { return Self.retryMilliseconds }
            let roundTrip = min((peers[known.node]?.roundTrip ?? 0) / 1_000_000 + 10, 300)
            return max(Self.retryMilliseconds, known.isSound ? roundTrip / 2 : roundTrip)
        }
        for loss in losses {
            guard let node = receiving[loss.publication]?.node else { continue }
            counters.packetsMissed &+= UInt64(loss.numbers.count)
            var numbers = loss.numbers[...]
            while !numbers.isEmpty {
                let record = LinkRecord.missing(
                    handle: loss.publication,
                    position: UInt8(clamping: loss.position),
                    epoch: loss.epoch,
                    numbers: Array(numbers.prefix(LinkRecord.missingLimit))
                )
                numbers = numbers.dropFirst(LinkRecord.missingLimit)
                append(record, to: node, at: now)
            }
        }
        tellWants(at: now)
        for node in peers.keys { expirePath(to: node, at: now) }
        guard nextBeat <= now else { return }
        nextBeat = now.advanced(milliseconds: Self.beatMilliseconds)
        expireWants(at: now)
        expireWithholdings(at: now)
        for node in peers.keys {
            reviewLife(of: node, at: now)
            if peers[node]?.path.isShareDue(at: now) == true { share(pathTo: node, at: now) }
            append(.beat(stamp: UInt64(bitPattern: now.nanoseconds)), to: node, at: now)
        }
        countWithholdings()
    }

    /// Life of a lease on the rooms of another home, from the sending of the echoed beat.
    package static let leaseMilliseconds: Int64 = 1_000
    /// The same where the home's process has died.
    package static let prolongedMilliseconds: Int64 = 4_000
    static let beatMilliseconds: Int64 = 100
    /// Time without a refresh after which a want is over.
    static let wantMilliseconds: Int64 = 3_000
    static let refreshMilliseconds: Int64 = 1_000
    /// Interval of wants whose first packet has not come.
    static let waitingMilliseconds: Int64 = 100
    static let repairMilliseconds: Int64 = 250
    static let retryMilliseconds: Int64 = 30
    /// Length up to which records share a datagram, in bytes.
    static let datagramLength = 1_420
    /// Longest packet that goes to another node, in bytes: it fills a place of a batch.
    package static let packetLimit = Batch.stride - LinkDatagram.overhead - 64
    static let roundsAtOnce = 16
    /// Time for which a node is heard from which a publication came before.
    static let formerMilliseconds: Int64 = 1_000
}
