import CKernel
import Glibc
import Kernel
package import Nodes
package import RTP
package import Sockets
package import WorkerInterface

/// News of the links.
package enum LinkNews: Hashable, Sendable {
    case up(NodeName)
    /// Keys of the datagrams, behind each `up`.
    case keys(NodeName, LinkKeys)
    case down(NodeName)
    /// Nobody listens at the node's port; `down` follows.
    case refused(NodeName)
    case message(NodeName, LinkMessage)
    /// Round-trip time in milliseconds.
    case roundTrip(NodeName, Double)
}

/// The TCP connections to other nodes: one for each that is needed.
///
/// Both sides check the other's certificate against the registry's records. A stranger costs one of
/// a few places for `handshakeMilliseconds`, and is counted.
package struct Links {
    private let listener: TCPListener
    private let identity: LinkIdentity
    private let own: NodeName
    private var connections: [UInt64: LinkConnection] = [:]
    private var established: [NodeName: UInt64] = [:]
    private var trusted: [String: NodeName] = [:]
    private var failures: [NodeName: (count: Int, last: Instant)] = [:]
    private var requested: [NodeName: (address: Address, fingerprint: String)] = [:]
    private var lastID: UInt64 = 0
    private var touched: Set<UInt64> = []
    private var news: [LinkNews] = []
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private var nextTick = Instant(nanoseconds: 0)
    /// Spare descriptor, closed to accept and refuse a connection when no descriptors are left; -1
    /// for none.
    private var spare = kernel_open_null()
    /// Connections of peers that proved to be no node, or nothing in time.
    package private(set) var strangers: UInt64 = 0
    package private(set) var bytesIn: UInt64 = 0

    /// Takes links on `listener`.
    package init(_ listener: TCPListener, _ identity: LinkIdentity, own: NodeName) {
        self.listener = listener
        self.identity = identity
        self.own = own
    }

    package var fingerprint: String { identity.fingerprint }
    package var address: String { listener.address.endpointText }
    package var descriptor: Int32 { listener.descriptor }

    package mutating func takeNews() -> [LinkNews] {
        defer { news = [] }
        return news
    }

    /// Sets who may link; links of others end.
    package mutating func trust(_ fingerprints: [String: NodeName]) {
        trusted = fingerprints
        for (id, connection) in connections where connection.isUp {
            if let print = connection.fingerprint, trusted[print] != connection.node { close(id) }
        }
    }

    /// Wants a link; `up` or `down` follows.
    package mutating func connect(to node: NodeName, at address: String, _ fingerprint: String) {
        guard established[node] == nil, let remote = Address(endpoint: address) else {
            return news.append(established[node] == nil ? .down(node) : .up(node))
        }
        requested[node] = (remote, fingerprint)
        nextTick = Instant(nanoseconds: 0)
    }

    /// Ends a link.
    package mutating func disconnect(_ node: NodeName) {
        requested[node] = nil
        failures[node] = nil
        for (id, connection) in connections where connection.node == node { close(id) }
    }

    package mutating func send(_ message: LinkMessage, to node: NodeName) {
        guard let id = established[node], connections[id] != nil else { return }
        if connections[id]?.send(message) == true { touched.insert(id) } else { close(id) }
    }

    /// Accepts waiting connections, a bounded number per call.
    package mutating func accept(
        with poller: borrowing Poller,
        _ token: (UInt64) -> UInt64,
        at now: Instant
    ) {
        for _ in 0..<Self.acceptsPerTurn {
            let descriptor: Int32
            switch listener.accept() {
            case .connection(let accepted, _): descriptor = accepted
            case .gone: continue
            case .nobody: return
            case .noDescriptors: return refuseConnection()
            }
            let unproven = connections.values.count { !$0.isUp && !$0.isOutgoing }
            guard unproven < Self.unprovenLimit,
                let session = try? LinkSession(identity, isClient: false)
            else {
                strangers &+= 1
                kernel_close(descriptor)
                continue
            }
            let connection = LinkConnection(
                descriptor,
                session,
                to: nil,
                fingerprint: nil,
                at: now
            )
            add(connection, poller, token)
        }
    }

    /// Accepts and closes one connection when no descriptor is left.
    ///
    /// The listener would otherwise stay ready and the control thread would spin.
    private mutating func refuseConnection() {
        guard spare >= 0 else { return }
        kernel_close(spare)
        if case .connection(let descriptor, _) = listener.accept() {
            strangers &+= 1
            kernel_close(descriptor)
        }
        spare = kernel_open_null()
    }

    private mutating func add(
        _ connection: LinkConnection,
        _ poller: borrowing Poller,
        _ token: (UInt64) -> UInt64
    ) {
        lastID += 1
        do throws(SystemError) {
            try poller.add(connection.descriptor, for: .readable, token: token(lastID))
        } catch {
            kernel_close(connection.descriptor)
            if let node = connection.node { news.append(.down(node)) }
            return
        }
        connections[lastID] = connection
        touched.insert(lastID)
    }

    /// Reads from a connection that is ready.
    package mutating func serve(_ id: UInt64, _ readiness: Poller.Readiness, at now: Instant) {
        guard connections[id] != nil else { return }
        touched.insert(id)
        guard readiness.readable || readiness.hungUp else { return }
        guard var connection = connections.removeValue(forKey: id) else { return }
        let messages: [LinkMessage]
        do throws(LinkError) {
            messages = try connection.read(&buffer, at: now)
            connections[id] = connection
        } catch {
            connections[id] = connection
            if error != .closed, !connection.isUp, !connection.isOutgoing { strangers &+= 1 }
            return fail(id, because: error)
        }
        if !connection.isUp, connection.session.isEstablished {
            guard establish(id, at: now) else { return }
        }
        guard let node = connections[id]?.node, connections[id]?.isUp == true else { return }
        for message in messages { take(message, from: node, over: id, at: now) }
    }

    private mutating func take(
        _ message: LinkMessage,
        from node: NodeName,
        over id: UInt64,
        at now: Instant
    ) {
        if case .ping(let stamp) = message {
            if connections[id]?.send(.pong(stamp)) == false { close(id) }
        } else if case .pong(let stamp) = message {
            let sent = Instant(nanoseconds: Int64(truncatingIfNeeded: stamp))
            let nanoseconds = now.nanoseconds(since: sent)
            if nanoseconds >= 0 { news.append(.roundTrip(node, Double(nanoseconds) / 1e6)) }
        }
        news.append(.message(node, message))
    }

    /// Lets a peer in whose handshake is done, if the registry knows its certificate.
    ///
    /// If both nodes have connected at once, the connection of the first by name stays.
    private mutating func establish(_ id: UInt64, at now: Instant) -> Bool {
        guard let connection = connections[id], let print = connection.session.peerFingerprint,
            let node = trusted[print],
            !connection.isOutgoing || (connection.node == node && connection.fingerprint == print)
        else {
            strangers &+= 1
            close(id)
            return false
        }
        if let present = established[node], let old = connections[present] {
            let initiator = connection.isOutgoing ? own : node
            let isSame = old.isOutgoing == connection.isOutgoing
            let other = old.isOutgoing ? own : node
            let wins = old.fingerprint != print || isSame || initiator < other
            guard wins else {
                connections[id]?.node = nil
                close(id)
                return false
            }
            close(present)
        }
        connections[id]?.node = node
        connections[id]?.fingerprint = print
        connections[id]?.isUp = true
        established[node] = id
        failures[node] = nil
        requested[node] = nil
        news.append(.up(node))
        if let keys = connection.session.datagramKeys { news.append(.keys(node, keys)) }
        return true
    }

    private mutating func fail(_ id: UInt64, because error: LinkError) {
        if error == .refused, let node = connections[id]?.node { news.append(.refused(node)) }
        close(id)
    }

    private mutating func close(_ id: UInt64) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        // Closing the descriptor also removes it from the poller.
        kernel_close(connection.descriptor)
        guard let node = connection.node else { return }
        if established[node] == id {
            established[node] = nil
            news.append(.down(node))
        } else if established[node] == nil {
            let count = min((failures[node]?.count ?? 0) + 1, Self.failureLimit)
            failures[node] = (count, connection.begun)
            news.append(.down(node))
        }
    }

    /// Begins connections, sends pings, and ends what is late or silent.
    package mutating func expire(
        with poller: borrowing Poller,
        _ token: (UInt64) -> UInt64,
        at now: Instant
    ) {
        guard nextTick <= now else { return }
        nextTick = now.advanced(milliseconds: Self.tickMilliseconds)
        for (node, request) in requested where isDue(node, at: now) {
            requested[node] = nil
            begin(node, request.address, request.fingerprint, poller, token, at: now)
        }
        for (id, connection) in connections {
            if connection.isUp {
                if now.milliseconds(since: connection.heard) >= Self.silenceMilliseconds {
                    close(id)
                } else if connection.nextPing <= now {
                    connections[id]?.nextPing = now.advanced(milliseconds: Self.pingMilliseconds)
                    let stamp = UInt64(bitPattern: now.nanoseconds)
                    if connections[id]?.send(.ping(stamp)) == false { close(id) }
                    touched.insert(id)
                }
            } else if now.milliseconds(since: connection.begun) >= Self.handshakeMilliseconds {
                if connection.node == nil { strangers &+= 1 }
                close(id)
            }
        }
    }

    private func isDue(_ node: NodeName, at now: Instant) -> Bool {
        guard let failure = failures[node] else { return true }
        let pause = Self.firstPauseMilliseconds << Int64(failure.count)
        return now.milliseconds(since: failure.last) >= pause
    }

    private mutating func begin(
        _ node: NodeName,
        _ remote: Address,
        _ fingerprint: String,
        _ poller: borrowing Poller,
        _ token: (UInt64) -> UInt64,
        at now: Instant
    ) {
        guard established[node] == nil else { return news.append(.up(node)) }
        let descriptor: Int32
        do throws(SystemError) {
            descriptor = try TCPListener.connect(to: remote)
        } catch {
            let count = min((failures[node]?.count ?? 0) + 1, Self.failureLimit)
            failures[node] = (count, now)
            if error.number == ECONNREFUSED { news.append(.refused(node)) }
            return news.append(.down(node))
        }
        guard let session = try? LinkSession(identity, isClient: true) else {
            kernel_close(descriptor)
            return news.append(.down(node))
        }
        let connection = LinkConnection(
            descriptor,
            session,
            to: node,
            fingerprint: fingerprint,
            at: now
        )
        add(connection, poller, token)
    }

    /// Writes queued bytes, and updates the poller's interest.
    package mutating func flush(with poller: borrowing Poller, _ token: (UInt64) -> UInt64) {
        for id in touched {
            guard var connection = connections[id] else { continue }
            connections[id] = nil
            var failure: LinkError?
            do throws(LinkError) { try connection.write() } catch { failure = error }
            let wanted: Poller.Interest =
                connection.waiting > 0 ? [.readable, .writable] : .readable
            if wanted != connection.interest {
                connection.interest = wanted
                poller.change(connection.descriptor, to: wanted, token: token(id))
            }
            connections[id] = connection
            if let failure { fail(id, because: failure) }
        }
        touched.removeAll(keepingCapacity: true)
    }

    /// Next time that `expire` has something to do.
    package var deadline: Instant? {
        connections.isEmpty && requested.isEmpty ? nil : nextTick
    }

    private static let acceptsPerTurn = 16
    /// Peers that have not proven yet that they are nodes.
    private static let unprovenLimit = 16
    private static let handshakeMilliseconds: Int64 = 5_000
    private static let silenceMilliseconds: Int64 = 3_000
    private static let pingMilliseconds: Int64 = 1_000
    private static let tickMilliseconds: Int64 = 50
    /// Pause after a failed connection, doubled with each one up to `failureLimit` times.
    private static let firstPauseMilliseconds: Int64 = 50
    private static let failureLimit = 5
}
