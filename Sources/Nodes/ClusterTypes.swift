package import Contract
import JSON

/// Facts about this node, fixed at its start.
package struct NodeSetup: Hashable, Sendable {
    package var name: NodeName
    /// Identifier of this life, as in `server.info`.
    package var boot: String
    /// `ADDR:PORT` where it takes links.
    package var link: String
    /// SHA-256 of its link certificate, in hexadecimal digits.
    package var fingerprint: String
    package var region: String?

    package init(
        name: NodeName,
        boot: String,
        link: String,
        fingerprint: String,
        region: String? = nil
    ) {
        self.name = name
        self.boot = boot
        self.link = link
        self.fingerprint = fingerprint
        self.region = region
    }
}

/// Figures of this node that its record tells the others.
package struct NodeLoad: Hashable, Sendable {
    package var state = NodeState.up
    /// Share of time for which the workers are busy: 0 to 1.
    package var load = 0.0
    package var rooms = 0
    package var participants = 0
    /// Rooms for which there is still a place; the record does not tell it.
    package var places = Int.max

    package init() {}
}

/// Work for the owner of a `Cluster`, in order.
package enum ClusterOutput: Hashable, Sendable {
    /// Executes a call by the local control plane as if this connection had made it.
    ///
    /// If it creates a room, `conclude` follows with whether the room exists.
    case execute(IPCRequest, connection: UInt64, creates: String?)
    /// A reply or an event to a local connection.
    case line(connection: UInt64, [UInt8])
    case registry(RegistryRequest)
    case connect(NodeName, address: String, fingerprint: String)
    case disconnect(NodeName)
    case send(NodeName, LinkMessage)
    /// Fingerprints of the nodes that may link, in place of those before.
    case trust([String: NodeName])
    /// The link to a node can carry messages.
    case linked(NodeName)
    /// Facts that another node tells of itself.
    case described(NodeName, [UInt8])
    /// Work from a home for its participants here, or news for this home of those at a node.
    case place(NodeName, isFromHome: Bool, [UInt8])
    /// The participants of this home at a node are gone (`asHome`), or those of another home here
    /// must go.
    case placesLost(NodeName, asHome: Bool)
    /// A node does not go on with this home's participants there: its process has begun again, or
    /// could not follow.
    case placesDisowned(NodeName)
    /// A life of another home is over: its participants here wait for the next home.
    case homeLost(NodeName, boot: String)
    /// The process of another home has begun again, and goes on with its participants here itself.
    case homeReturned(NodeName, boot: String)
    /// A home has died: this node's lease on its rooms lasts until another has gone on with them.
    case prolong(NodeName)
    /// Ends a room whose name is no longer this node's.
    case endRoom(String)
    /// Ends this node's copy of a room that goes on at another node, without a word.
    case abandonRoom(String)
    /// Ends this node's copy of a room that it has let go, but not what other nodes have of it.
    case letGo(String)
    /// The nodes of the cluster as they are now.
    case nodes(NodeList.Result)
    /// Goes on with a room of a lost node; `adopted` follows, perhaps later.
    case adopt(TakenRoom)
    /// Gives up going on with a room, if that is under way.
    case cancelAdoption(String)
    /// An event of a room of this node, for its own connections and other nodes.
    case event(room: String, seq: UInt64, name: String, [UInt8])
    case log(isWarning: Bool, String, [String: String])
}

/// Event that a connection has missed, or a `resync` in its place.
package struct ReplayedEvent: Hashable, Sendable {
    package var room: String
    package var seq: UInt64
    package var name: String
    package var line: [UInt8]

    package init(room: String, seq: UInt64, name: String, line: [UInt8]) {
        self.room = room
        self.seq = seq
        self.name = name
        self.line = line
    }
}

/// A call, with what its reply needs.
struct PendingCall: Hashable, Sendable {
    enum Origin: Hashable, Sendable {
        /// A connection of a signalling server at this node.
        case here(UInt64)
        /// A connection number that stands for a call of another node.
        case peer(UInt64)

        var connection: UInt64 {
            switch self {
            case .here(let connection), .peer(let connection): connection
            }
        }
    }

    var request: IPCRequest
    var line: [UInt8]
    var origin: Origin
    /// Whether the registry was asked for the room already.
    var wasLookedUp = false
    /// Whether it is a subscription of a connection here that waits for a room before it begins.
    var isToSubscribe = false
    /// Number under which it was first sent to a home that was lost before it answered.
    var firstNumber: UInt64?

    /// Room that the call is about, if any.
    var room: String? {
        if case .string(let room) = request.params["room"], RoomID(rawValue: room) != nil {
            return room
        }
        return nil
    }
}

extension PendingCall {
    /// Whether another node asks for events by it.
    var asksForPeer: Bool {
        if case .peer = origin { request.method == EventsSubscribe.name } else { false }
    }

    /// Whether it is a subscription of a connection here that waits for a room.
    func subscribes(_ connection: UInt64) -> Bool {
        isToSubscribe && origin == .here(connection)
    }
}

/// Counters of the cluster's work, for the metrics.
package struct ClusterCounters: Hashable, Sendable {
    /// Calls sent to other nodes, repeats not counted.
    package internal(set) var callsForwarded: UInt64 = 0
    /// Calls executed for other nodes.
    package internal(set) var callsExecuted: UInt64 = 0
    /// Calls answered with `outcome-unknown`.
    package internal(set) var outcomesUnknown: UInt64 = 0
    /// Calls sent again after a link had broken.
    package internal(set) var callsRepeated: UInt64 = 0
    package internal(set) var eventsSent: UInt64 = 0
    package internal(set) var eventsReceived: UInt64 = 0
    /// Rooms that ended here because another node had a later claim.
    package internal(set) var roomsLost: UInt64 = 0
    /// Leases of other nodes that ended.
    package internal(set) var nodesLost: UInt64 = 0
    /// Rooms that were let go to other nodes.
    package internal(set) var roomsLetGo: UInt64 = 0
    /// Rooms of lost nodes that go on here.
    package internal(set) var roomsTakenOver: UInt64 = 0
    /// Groups of changes written to journals, snapshots included.
    package internal(set) var journalGroups: UInt64 = 0
    package internal(set) var journalSnapshots: UInt64 = 0
    package internal(set) var journalBytes: UInt64 = 0
    /// Replies that said `durable: false`.
    package internal(set) var repliesNotDurable: UInt64 = 0

    package init() {}
}

/// The events that a connection receives.
struct FeedInterest: Hashable, Sendable {
    /// `nil` for all rooms.
    var rooms: Set<String>?
    /// `nil` for all events.
    var patterns: [EventPattern]?

    init(_ params: EventsSubscribe.Params) {
        rooms = params.rooms.map { Set($0.map(\.rawValue)) }
        patterns = params.events
    }

    func includes(room: String) -> Bool { rooms?.contains(room) ?? true }

    func includes(_ event: String, in room: String) -> Bool {
        includes(room: room) && (patterns?.contains { $0.matches(event) } ?? true)
    }
}

extension IPCError {
    /// Reports that the registry is needed and cannot be reached.
    package static func registryAway() -> Self {
        Self(
            code: 4506,
            message: "the registry of nodes cannot be reached; nothing was changed",
            reason: "registry-away"
        )
    }

    /// Reports that a call could not be brought to the room's node; it was not executed.
    package static func nodeUnreachable(_ node: NodeName) -> Self {
        Self(
            code: 4506,
            message: "node \"\(node)\" cannot be reached; nothing was changed",
            reason: "node-unreachable",
            details: ["node": .string(node.rawValue)]
        )
    }

    /// Reports that a call may or may not have been executed at the room's node.
    package static func outcomeUnknown(_ node: NodeName) -> Self {
        Self(
            code: 4504,
            message: "node \"\(node)\" was lost before it answered",
            reason: "outcome-unknown",
            details: ["node": .string(node.rawValue)]
        )
    }
}
