import JSON

/// Subscribes this connection to the events of rooms.
public enum EventsSubscribe: IPCMethod {
    public static let name = "events.subscribe"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        /// Rooms to subscribe to; `nil` for all rooms.
        public var rooms: [RoomID]?
        /// Last `seq` seen of each room; the events after it are sent first.
        public var since: [RoomID: Int64]?

        public init(rooms: [RoomID]? = nil, since: [RoomID: Int64]? = nil) {
            self.rooms = rooms
            self.since = since
        }
    }
}

/// The participants that the signalling server should pass an event on to.
public enum Audience: Hashable, Sendable {
    /// Everybody in the room except those who wait to be let in.
    case all
    case participants([ParticipantID])
}

extension Audience: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let word = try? container.decode(String.self) {
            guard word == "all" else { throw decoder.refusal("must be \"all\" or a list") }
            self = .all
        } else {
            self = .participants(try container.decode([ParticipantID].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .all: try container.encode("all")
        case .participants(let list): try container.encode(list)
        }
    }
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

    public init(state: RoomState, settings: RoomSettings) {
        self.state = state
        self.settings = settings
    }
}

/// `room.closed`: the last event of a room.
public struct RoomClosed: EventData {
    public static let event = "room.closed"
    /// `closed`, `shutdown`, or the reason that the call gave.
    public var reason: String
    public var by: ParticipantID?

    public init(reason: String, by: ParticipantID? = nil) {
        self.reason = reason
        self.by = by
    }
}

/// `participant.joined`: a participant joined, or joined again under the same id.
public struct ParticipantJoined: EventData {
    public static let event = "participant.joined"
    public var participant: ParticipantInfo
    /// Whether the id was in the room already, as after a reconnect.
    public var rejoined: Bool

    public init(participant: ParticipantInfo, rejoined: Bool = false) {
        self.participant = participant
        self.rejoined = rejoined
    }
}

/// `participant.left`.
public struct ParticipantLeft: EventData {
    public static let event = "participant.left"
    public var participant: ParticipantID
    /// A word such as `left` or `room-closed`.
    public var reason: String

    public init(participant: ParticipantID, reason: String) {
        self.participant = participant
        self.reason = reason
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

/// `resync`: events were missed and cannot be sent again; call `room.get` for the current state.
///
/// It is sent to one connection only, and `to` is empty. Its `seq` is that of the room's last
/// event, so that the next one is `seq` + 1; it is 0 if the room does not exist.
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
    public var participant: AwaitedParticipant
    public init(participant: AwaitedParticipant) { self.participant = participant }
}
