package import Contract
import RTP
import Rooms
package import WorkerInterface

/// Identifier of an IPC connection, never reused within a process.
package struct ConnectionID: Hashable, Sendable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// Output of the control plane, to be executed in order.
package enum ControlOutput {
    /// A reply to one connection: a JSON object without the newline.
    case reply(ConnectionID, [UInt8])
    /// A room's event, to every connection subscribed to the room.
    case event(EventLine, room: String, seq: UInt64)
    /// A server event, to every connection that receives events.
    case serverEvent(EventLine)
    /// Statistics for one connection, which has subscribed to them.
    case statistics(ConnectionID, EventLine)
    /// Sets the events that a connection receives, after those that it missed.
    case subscribe(ConnectionID, EventInterest, replay: [MissedEvent])
    case commands(worker: Int, [WorkerCommand])
    /// A message about participants: to a node where they are, or to their home.
    case place(node: String, asHome: Bool, [UInt8])
    /// Lets a room go to another home, if there is one for it; `ControlPlane.handOver` follows.
    ///
    /// If it is forced, also a room that came back a short time ago as nobody took it.
    case handOver(room: String, isForced: Bool)
    /// Saves changes as one: all of them, or none if the process ends meanwhile.
    ///
    /// It precedes all replies, events and commands that depend on it.
    case save([SavedChange])
    case log(LogLevel, String, [(String, String)])
    case close(ConnectionID)
    /// Checks another program, by default the one that was started, and then replaces this one by
    /// it; `concludeUpgrade` tells the outcome.
    case upgrade(binary: String?)
    /// All rooms have ended after `shutdown`: the process may exit.
    case exit
}

/// Record to be saved, or removed if it has no value.
package struct SavedChange: Hashable, Sendable {
    package var key: String
    package var value: [UInt8]?
    /// The value without secrets, if it has any.
    package var publicValue: [UInt8]?

    package init(key: String, value: [UInt8]?, publicValue: [UInt8]? = nil) {
        self.key = key
        self.value = value
        self.publicValue = publicValue
    }

    /// Room that the record belongs to, or a home with a slash; empty for the process's own.
    package var scope: String {
        guard let parts = RoomRecords.parts(of: key) else { return "" }
        // A home may have the name of a room.
        return parts.kind == .guest ? "g/\(parts.room)" : parts.room
    }
}

extension [SavedChange] {
    /// The changes by their scopes, in the order in which they are to be saved.
    ///
    /// The process's own come first, as the empty scope: if it dies before the rest is saved, the
    /// numbers that rooms were given have been counted.
    package var byScope: [(key: String, value: [SavedChange])] {
        Dictionary(grouping: self, by: \.scope).sorted { $0.key < $1.key }
    }
}

/// Severity of a log line; a configured level includes all above it.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    case debug, info, warning, error

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .warning: 2
        case .error: 3
        }
    }
}

/// An encoded event with its name.
package struct EventLine: Hashable, Sendable {
    package var name: String
    package var line: [UInt8]

    package init(name: String, line: [UInt8]) {
        self.name = name
        self.line = line
    }
}

/// Event that a connection has missed, or a `resync` in its place.
package struct MissedEvent: Hashable, Sendable {
    package var room: String
    package var seq: UInt64
    package var event: EventLine

    package init(_ event: EventLine, room: String, seq: UInt64) {
        self.event = event
        self.room = room
        self.seq = seq
    }
}

/// The events that a connection receives.
package struct EventInterest: Hashable, Sendable {
    /// Rooms whose events it receives; `nil` for all.
    package var rooms: Set<String>?
    /// Names or prefixes of the events; `nil` for all.
    private var patterns: [EventPattern]?

    package init(rooms: Set<String>? = nil, patterns: [EventPattern]? = nil) {
        self.rooms = rooms
        self.patterns = patterns
    }

    /// Whether an event is received; `room` is `nil` for a server event.
    package func includes(_ event: String, in room: String?) -> Bool {
        if let room, rooms?.contains(room) == false { return false }
        return patterns?.contains { $0.matches(event) } ?? true
    }
}
