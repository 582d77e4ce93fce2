import JSON
import RTP
import Rooms
import WorkerInterface

/// Facts that a node tells the others of itself when a link is up.
struct PlaceFacts: Codable {
    /// Version of the messages about participants; nodes of another one stay apart.
    var version: Int
    /// Addresses and certificate of each worker, as they go into answers.
    var workers: [LocalParameters]
    /// Handles of each worker.
    var transports: Int
    var publications: Int
    var slots: Int
    /// Whether homes get media of its publishers for other nodes; those of an earlier version leave
    /// it out.
    var feedsHomes: Bool?
    /// Homes whose participants this process has kept from the one before it.
    ///
    /// They wait for their homes to build them anew. Those of an earlier version leave it out.
    var keeps: [FormerHome]?

    static let version = 2
    static let workerLimit = 256
    static let handleLimit = 1 << 20

    var isValid: Bool {
        version == Self.version && (1...Self.workerLimit).contains(workers.count)
            && [transports, publications, slots].allSatisfy {
                (0...Self.handleLimit).contains($0)
            }
    }
}

/// Commands of a home for one worker of a node.
struct PlaceCommands: Codable {
    var worker: Int
    /// Number that the home has given to the worker.
    var place: Int
    var commands: [RemoteCommand]

    /// The parts in which it is sent, none longer than `PlaceEvents.byteLimit` but for one that has
    /// a single command.
    var parts: [[UInt8]] {
        let bytes = JSON.compact(self)
        guard bytes.count > PlaceEvents.byteLimit, commands.count > 1 else { return [bytes] }
        var (first, rest) = (self, self)
        first.commands = Array(commands.prefix(commands.count / 2))
        rest.commands = Array(commands.dropFirst(commands.count / 2))
        return first.parts + rest.parts
    }
}

/// Events of one worker of a node, for a home.
struct PlaceEvents: Codable {
    var place: Int
    /// The sender's monotonic clock.
    var clock: Instant
    var events: [RemoteEvent]

    /// Most bytes of a message; a longer one would end the link, again and again.
    static let byteLimit = 3 << 20

    /// Returns the message, and whether figures had to be left out to keep within the limit.
    func encoded(within limit: Int = byteLimit) -> (bytes: [UInt8], isWhole: Bool) {
        let bytes = JSON.compact(self)
        guard bytes.count > limit else { return (bytes, true) }
        var shorter = self
        shorter.events = events.map(\.withoutFigures)
        return (JSON.compact(shorter), false)
    }
}

extension JSON {
    /// Decodes what another node has sent; `nil` if it is nothing that this version knows.
    static func sent<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) -> Value? {
        guard let json = try? JSON(parsingCompact: bytes) else { return nil }
        return try? json.decode(type, isClosed: false)
    }
}
