public import JSON

/// Version of the IPC contract that these types implement.
public let contractVersion = 2

/// Returns the server's version, addresses and limits.
public enum ServerInfo: IPCMethod {
    public static let name = "server.info"
    public typealias Params = Empty

    public struct Result: Codable, Hashable, Sendable {
        public var version: String
        /// Version of the contract.
        public var contract: Int
        public var workers: Int
        /// `ADDR:PORT` of each UDP socket.
        public var udp: [String]
        /// `ADDR:PORT` of each listening TCP socket; `nil` if there is none.
        public var tcp: [String]?
        /// Fingerprint of the DTLS certificate as SDP writes it: `sha-256 AB:CD:…`.
        public var fingerprint: String
        public var limits: ServerLimits
        /// Different after each start, unless the rooms were kept over it.
        public var boot: String
        /// Unix time of the start, in seconds.
        public var started: Double
        /// Whether new rooms are refused.
        public var draining: Bool

        public init(
            version: String,
            workers: Int,
            udp: [String],
            tcp: [String]? = nil,
            fingerprint: String,
            limits: ServerLimits,
            boot: String,
            started: Double,
            draining: Bool = false
        ) {
            self.version = version
            contract = contractVersion
            self.workers = workers
            self.udp = udp
            self.tcp = tcp
            self.fingerprint = fingerprint
            self.limits = limits
            self.boot = boot
            self.started = started
            self.draining = draining
        }
    }
}

/// Limits of the server, by the names that `4029 limit-reached` and the configuration use.
///
/// docs/limits.md explains them.
public struct ServerLimits: Codable, Hashable, Sendable {
    public var values: [String: Int]

    public init(_ values: [String: Int]) { self.values = values }

    public subscript(name: String) -> Int? { values[name] }

    public init(from decoder: any Decoder) throws {
        values = try decoder.singleValueContainer().decode([String: Int].self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(values)
    }
}

/// Counters of packets and bytes since the start.
public struct PacketCounters: Codable, Hashable, Sendable {
    public var datagramsIn: UInt64 = 0
    public var bytesIn: UInt64 = 0
    public var stunIn: UInt64 = 0
    public var dtlsIn: UInt64 = 0
    public var rtcpIn: UInt64 = 0
    public var rtpIn: UInt64 = 0
    /// Received RTP packets sent to at least one subscriber or handed to another worker.
    public var rtpForwarded: UInt64 = 0
    /// Packets handed to other workers, counted once for each worker.
    public var relayedOut: UInt64 = 0
    /// Packets received from other workers; `rtpIn` counts them at the worker that received them.
    public var relayedIn: UInt64 = 0
    /// Packets of `relayedIn` that were sent to at least one subscriber.
    public var relayedForwarded: UInt64 = 0
    public var datagramsOut: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Forwarded copies without retransmissions.
    public var rtpOut: UInt64 = 0
    public var rtxOut: UInt64 = 0
    /// Padding packets that probed the capacity of a subscriber's path.
    public var paddingOut: UInt64 = 0
    public var rtcpOut: UInt64 = 0
    /// Packets dropped, by cause.
    public var drops: [String: UInt64] = [:]
    /// Packets from other workers that were dropped, by cause.
    public var relayDrops: [String: UInt64] = [:]
    /// Datagrams that the kernel dropped because a socket's receive buffer was full.
    public var kernelDrops: UInt64 = 0

    public init() {}

    /// Adds another worker's counters.
    public static func += (sum: inout Self, other: Self) {
        sum.datagramsIn &+= other.datagramsIn
        sum.bytesIn &+= other.bytesIn
        sum.stunIn &+= other.stunIn
        sum.dtlsIn &+= other.dtlsIn
        sum.rtcpIn &+= other.rtcpIn
        sum.rtpIn &+= other.rtpIn
        sum.rtpForwarded &+= other.rtpForwarded
        sum.relayedOut &+= other.relayedOut
        sum.relayedIn &+= other.relayedIn
        sum.relayedForwarded &+= other.relayedForwarded
        sum.datagramsOut &+= other.datagramsOut
        sum.bytesOut &+= other.bytesOut
        sum.rtpOut &+= other.rtpOut
        sum.rtxOut &+= other.rtxOut
        sum.paddingOut &+= other.paddingOut
        sum.rtcpOut &+= other.rtcpOut
        sum.drops.merge(other.drops) { $0 &+ $1 }
        sum.relayDrops.merge(other.relayDrops) { $0 &+ $1 }
        sum.kernelDrops &+= other.kernelDrops
    }
}

/// State and counters of one worker.
public struct WorkerInfo: Codable, Hashable, Sendable {
    public var worker: Int
    /// Recent use of one core: 0 to 1.
    public var load: Double
    public var transports: Int
    /// Load of the worker, and its load-shedding level.
    public var pressure: OverloadInfo
    public var counters: PacketCounters

    public init(
        worker: Int,
        load: Double,
        transports: Int,
        pressure: OverloadInfo = OverloadInfo(),
        counters: PacketCounters
    ) {
        self.worker = worker
        self.load = load
        self.transports = transports
        self.pressure = pressure
        self.counters = counters
    }

    private enum CodingKeys: CodingKey { case worker, load, transports, pressure }

    /// Decodes the counters from the same object as the other members.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        worker = try container.decode(Int.self, forKey: .worker)
        load = try container.decode(Double.self, forKey: .load)
        transports = try container.decode(Int.self, forKey: .transports)
        pressure =
            try container.decodeIfPresent(OverloadInfo.self, forKey: .pressure) ?? OverloadInfo()
        counters = try PacketCounters(from: decoder)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(worker, forKey: .worker)
        try container.encode(load, forKey: .load)
        try container.encode(transports, forKey: .transports)
        try container.encode(pressure, forKey: .pressure)
        try counters.encode(to: encoder)
    }
}

/// Percentiles of the time that media spends in the daemon, in milliseconds.
public struct ForwardingTime: Codable, Hashable, Sendable {
    public var p50: Double
    public var p99: Double
    public var p999: Double

    public init(p50: Double, p99: Double, p999: Double) {
        self.p50 = p50
        self.p99 = p99
        self.p999 = p999
    }
}

/// Time from a media packet's arrival to the first and the last copy of its batch being sent.
public struct ForwardingInfo: Codable, Hashable, Sendable {
    public var first: ForwardingTime
    public var last: ForwardingTime

    public init(first: ForwardingTime, last: ForwardingTime) {
        self.first = first
        self.last = last
    }
}

/// Returns this contract as an OpenRPC document: methods, events and the schemas of their types.
public enum ServerDescribe: IPCMethod {
    public static let name = "server.describe"
    public typealias Params = Empty

    /// An OpenRPC 1.3 document.
    public struct Result: Codable, Hashable, Sendable {
        public var document: JSON

        public init(document: JSON) { self.document = document }

        public init(from decoder: any Decoder) throws { document = try JSON(from: decoder) }

        public func encode(to encoder: any Encoder) throws { try document.encode(to: encoder) }
    }
}

/// Refuses new rooms from now on; existing rooms continue.
///
/// In a cluster the node's participants are asked to move to other nodes, and its rooms go on
/// there. `server.drained` follows when the last room has ended or left, at once if there is none.
public enum ServerDrain: IPCMethod {
    public static let name = "server.drain"
    public typealias Result = Empty

    public struct Params: Codable, Hashable, Sendable {
        /// Seconds until remaining rooms end with reason `shutdown`: 0 to 604,800, a week.
        ///
        /// `nil` for no deadline.
        public var deadline: Double?

        public init(deadline: Double? = nil) { self.deadline = deadline }
    }
}

/// Takes `server.drain` back: new rooms are accepted again.
public enum ServerUndrain: IPCMethod {
    public static let name = "server.undrain"
    public typealias Params = Empty
    public typealias Result = Empty
}

/// Replaces the running program by another version, in the same process and on the same sockets.
///
/// The reply comes first. Then the connection ends, and `server.info` of a new one has another
/// `boot`.
public enum ServerUpgrade: IPCMethod {
    public static let name = "server.upgrade"
    public typealias Result = Empty

    public struct Params: Codable, Hashable, Sendable {
        /// Absolute path of the program, at most 1,024 bytes; `nil` for the one that was started.
        public var binary: String?

        public init(binary: String? = nil) { self.binary = binary }
    }
}

/// Returns traffic counters and load.
public enum ServerStats: IPCMethod {
    public static let name = "server.stats"
    public typealias Params = Empty

    public struct Result: Codable, Hashable, Sendable {
        /// Sum over all workers.
        public var counters: PacketCounters
        public var workers: [WorkerInfo]
        public var rooms: Int
        public var participants: Int
        public var transports: Int
        public var uptimeSeconds: Double
        /// Time in the daemon since the start; `nil` before the first forwarded packet.
        public var forwarding: ForwardingInfo?
        /// Joins and first transports that were refused because the workers were overloaded.
        public var joinsRefused: UInt64

        public init(
            workers: [WorkerInfo],
            rooms: Int,
            participants: Int,
            uptimeSeconds: Double,
            forwarding: ForwardingInfo? = nil,
            joinsRefused: UInt64 = 0
        ) {
            self.joinsRefused = joinsRefused
            counters = workers.reduce(into: PacketCounters()) { $0 += $1.counters }
            self.workers = workers
            self.rooms = rooms
            self.participants = participants
            self.forwarding = forwarding
            transports = workers.reduce(0) { $0 + $1.transports }
            self.uptimeSeconds = uptimeSeconds
        }

        private enum CodingKeys: CodingKey {
            case workers, rooms, participants, transports, uptimeSeconds, forwarding
            case joinsRefused
        }

        /// Decodes the counters from the same object as the other members.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            counters = try PacketCounters(from: decoder)
            workers = try container.decode([WorkerInfo].self, forKey: .workers)
            rooms = try container.decode(Int.self, forKey: .rooms)
            participants = try container.decode(Int.self, forKey: .participants)
            transports = try container.decode(Int.self, forKey: .transports)
            uptimeSeconds = try container.decode(Double.self, forKey: .uptimeSeconds)
            forwarding = try container.decodeIfPresent(ForwardingInfo.self, forKey: .forwarding)
            joinsRefused = try container.decodeIfPresent(UInt64.self, forKey: .joinsRefused) ?? 0
        }

        public func encode(to encoder: any Encoder) throws {
            try counters.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(workers, forKey: .workers)
            try container.encode(rooms, forKey: .rooms)
            try container.encode(participants, forKey: .participants)
            try container.encode(transports, forKey: .transports)
            try container.encode(uptimeSeconds, forKey: .uptimeSeconds)
            try container.encodeIfPresent(forwarding, forKey: .forwarding)
            try container.encode(joinsRefused, forKey: .joinsRefused)
        }
    }
}
