/// Lists the nodes of the cluster, by name; without a cluster there are none.
///
/// It shows them as the node sees them that is asked.
public enum NodeList: IPCMethod {
    public static let name = "node.list"
    public typealias Params = Empty
    /// Most calls that wait for one room's name, or for one node.
    package static let waitingLimit = 10_000

    public struct Result: Codable, Hashable, Sendable {
        /// Whether the registry answers; `nil` without a cluster.
        public var registry: RegistryAvailability?
        /// At most 64.
        public var nodes: [NodeInfo]

        public init(registry: RegistryAvailability? = nil, nodes: [NodeInfo] = []) {
            self.registry = registry
            self.nodes = nodes
        }
    }
}

/// Whether the nodes' registry can be reached.
public enum RegistryAvailability: String, Codable, Hashable, Sendable, CaseIterable {
    case reached
    /// No new rooms are taken, and no node is given up; everything else goes on.
    case away
}

/// State of a node as another sees it.
public enum NodeCondition: String, Codable, Hashable, Sendable, CaseIterable {
    case up
    /// It takes no new rooms.
    case draining
    /// It has not been heard of for the time of its lease; others go on with its rooms.
    case lost
}

/// State of the link to a node.
public enum LinkCondition: String, Codable, Hashable, Sendable, CaseIterable {
    /// The node that was asked.
    case own
    /// None is needed so far, or it was lost.
    case none
    case connecting
    case up
}

/// A node of the cluster.
public struct NodeInfo: Codable, Hashable, Sendable {
    public var node: String
    public var state: NodeCondition
    public var region: String?
    /// Share of time for which its workers are busy: 0 to 1.
    public var load: Double
    public var rooms: Int
    public var participants: Int
    /// `ADDR:PORT` where it takes links.
    public var address: String
    /// Its `boot` in `server.info`.
    public var boot: String
    /// Seconds since its last sign of life in the registry.
    public var beatAge: Double
    public var link: LinkCondition
    /// Round-trip time of the link, in milliseconds; absent without a link.
    public var roundTripMilliseconds: Double?

    public init(
        node: String,
        state: NodeCondition,
        region: String? = nil,
        load: Double = 0,
        rooms: Int = 0,
        participants: Int = 0,
        address: String,
        boot: String,
        beatAge: Double = 0,
        link: LinkCondition = .none,
        roundTripMilliseconds: Double? = nil
    ) {
        self.node = node
        self.state = state
        self.region = region
        self.load = load
        self.rooms = rooms
        self.participants = participants
        self.address = address
        self.boot = boot
        self.beatAge = beatAge
        self.link = link
        self.roundTripMilliseconds = roundTripMilliseconds
    }
}
