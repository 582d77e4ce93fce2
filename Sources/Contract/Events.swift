public import JSON

/// Subscribes this connection to the events of rooms.
public enum EventsSubscribe: IPCMethod {
    public static let name = "events.subscribe"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        /// Rooms to subscribe to; `nil` for all rooms.
        public var rooms: [RoomID]?
        /// Last `seq` seen of each room; the events after it are sent first.
        public var since: [RoomID: Int64]?
        /// Events to receive, by name or as a prefix like `room.*`; `nil` for all.
        ///
        /// `resync` always comes. `seq` has gaps where an event is left out.
        public var events: [EventPattern]?

        public init(
            rooms: [RoomID]? = nil,
            since: [RoomID: Int64]? = nil,
            events: [EventPattern]? = nil
        ) {
            self.rooms = rooms
            self.since = since
            self.events = events
        }
    }
}

/// The name of an event, or a prefix of names that ends in `.*`: `room.created`, `floor.*`.
public struct EventPattern: Codable, Hashable, Sendable, ExpressibleByStringLiteral {
    public let rawValue: String

    /// Returns `nil` for text that is neither a name nor a prefix.
    public init?(rawValue: String) {
        let name = rawValue.hasSuffix(".*") ? rawValue.dropLast(2) : rawValue[...]
        guard (1...64).contains(name.utf8.count),
            name.utf8.allSatisfy({ $0 == 0x2e || (0x41...0x5a).contains($0 & ~0x20) })
        else { return nil }
        self.rawValue = rawValue
    }

    public init(stringLiteral value: String) {
        guard let pattern = Self(rawValue: value) else { preconditionFailure("no event: \(value)") }
        self = pattern
    }

    public init(from decoder: any Decoder) throws {
        let string = try decoder.singleValueContainer().decode(String.self)
        guard let pattern = Self(rawValue: string) else {
            throw decoder.refusal("is neither an event's name nor a prefix that ends in \".*\"")
        }
        self = pattern
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    /// Whether the event of that name is meant.
    public func matches(_ event: String) -> Bool {
        guard rawValue.hasSuffix(".*") else { return event == rawValue }
        return event.hasPrefix(rawValue.dropLast())
    }
}

/// The participants that an event concerns, the caller included.
public enum Audience: Hashable, Sendable {
    /// Everybody in the room except those who wait to be let in.
    case all
    case participants([ParticipantID])
    /// Everybody of `all` except these.
    case except([ParticipantID])
}

extension Audience: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let word = try? container.decode(String.self) {
            guard word == "all" else {
                throw decoder.refusal("must be \"all\", a list or {\"except\": a list}")
            }
            self = .all
        } else if let others = try? container.decode(Others.self) {
            self = .except(others.except)
        } else {
            self = .participants(try container.decode([ParticipantID].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .all: try container.encode("all")
        case .participants(let list): try container.encode(list)
        case .except(let list): try container.encode(Others(except: list))
        }
    }

    /// An audience by those who are not in it.
    struct Others: Codable { var except: [ParticipantID] }
}

/// The data of an event, with the event's name.
public protocol EventData: Codable, Hashable, Sendable {
    static var event: String { get }
}

/// `room.created`.
public struct RoomCreated: EventData {
    public static let event = "room.created"
    public var state: RoomState
    public var settings: RoomSettings
    public var custom: JSON

    public init(state: RoomState, settings: RoomSettings, custom: JSON = [:]) {
        self.state = state
        self.settings = settings
        self.custom = custom
    }
}

/// `room.closed`: the last event of a room.
public struct RoomClosed: EventData {
    public static let event = "room.closed"
    /// `closed`, `empty`, `shutdown` or, in a cluster, `node-lost`.
    public var reason: String
    /// Free text of the caller.
    public var detail: ShortText?
    public var by: ParticipantID?

    public init(reason: String, detail: ShortText? = nil, by: ParticipantID? = nil) {
        self.reason = reason
        self.detail = detail
        self.by = by
    }
}

/// `participant.joined`: a participant joined, or joined again under the same id.
public struct ParticipantJoined: EventData {
    public static let event = "participant.joined"
    public var participant: ParticipantID
    public var participantInfo: ParticipantInfo
    /// Whether the id was in the room already, as after a reconnect.
    public var rejoined: Bool
    /// Participant who let it in.
    public var by: ParticipantID?

    public init(
        _ participantInfo: ParticipantInfo,
        rejoined: Bool = false,
        by: ParticipantID? = nil
    ) {
        participant = participantInfo.participant
        self.participantInfo = participantInfo
        self.rejoined = rejoined
        self.by = by
    }
}

/// `participant.left`.
public struct ParticipantLeft: EventData {
    public static let event = "participant.left"
    public var participant: ParticipantID
    /// `left`, `dropped`, `disconnected`, `denied`, `room-closed`, `replaced` or `shutdown`.
    public var reason: String
    /// Free text of the caller.
    public var detail: ShortText?
    public var by: ParticipantID?
    /// Account of its stay.
    public var session: SessionInfo?

    public init(
        participant: ParticipantID,
        reason: String,
        detail: ShortText? = nil,
        by: ParticipantID? = nil,
        session: SessionInfo? = nil
    ) {
        self.participant = participant
        self.reason = reason
        self.detail = detail
        self.by = by
        self.session = session
    }
}

/// `participant.connection`.
public struct ParticipantConnection: EventData {
    public static let event = "participant.connection"
    public enum Change: String, Codable, Hashable, Sendable, CaseIterable {
        case connected, reconnecting, reconnected, disconnected
    }

    public var participant: ParticipantID
    public var transport: TransportName
    public var connection: Change
    /// Cause of a disconnection: a word such as `timeout` or `dtls-handshake-failed`.
    public var reason: String?

    public init(
        participant: ParticipantID,
        transport: TransportName,
        connection: Change,
        reason: String? = nil
    ) {
        self.participant = participant
        self.transport = transport
        self.connection = connection
        self.reason = reason
    }
}

/// `participant.moveWanted`: the participant's client is to connect at another node of the cluster.
///
/// A complete offer on a new peer connection, for the same `transport`, is answered with that
/// node's candidates and certificate. With `node-lost` the former connection is over. With `drain`
/// it goes on until the new one is connected, which then takes over its streams, subscriptions and
/// following slots: those of m-lines with the same `mid` and kind.
public struct ParticipantMoveWanted: EventData {
    public static let event = "participant.moveWanted"
    public var participant: ParticipantID
    /// Node that answers the offer.
    public var node: String
    /// A word: `node-lost` or `drain`.
    public var reason: String

    public init(participant: ParticipantID, node: String, reason: String) {
        self.participant = participant
        self.node = node
        self.reason = reason
    }
}

/// `resync`: events were missed and cannot be sent again; call `room.get` for the current state.
///
/// It is sent to one connection only, and its `audience` is empty. Its `seq` is that of the room's
/// last event, so that the next one is `seq` + 1; it is 0 if the room does not exist.
public struct Resync: EventData {
    public static let event = "resync"
    /// Cause of the gap.
    ///
    /// sfud gives `expired` (the events are no longer held), `no-such-room`, or `ahead` (no event
    /// with that `seq` has happened yet). `EventSequence` gives `restarted` (a new daemon process)
    /// or `gap`.
    public var reason: String
    public init(reason: String) { self.reason = reason }
}

/// `server.drained`: the last room has ended after `server.drain`.
///
/// It belongs to no room: its line has no `room` and no `seq`, and it is sent to every connection
/// that receives events.
public struct ServerDrained: EventData {
    public static let event = "server.drained"
    public init() {}
}

/// `participant.awaited`: a participant waits to be let in.
public struct ParticipantAwaited: EventData {
    public static let event = "participant.awaited"
    public var participant: ParticipantID
    public var participantInfo: ParticipantInfo

    public init(_ participantInfo: ParticipantInfo) {
        participant = participantInfo.participant
        self.participantInfo = participantInfo
    }
}
