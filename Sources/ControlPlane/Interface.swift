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
    case event(room: String, seq: UInt64, line: [UInt8])
    /// A server event, to every connection that receives events.
    case serverEvent([UInt8])
    /// Sets the rooms whose events a connection receives (`nil`: all), after the missed events.
    case subscribe(ConnectionID, rooms: Set<String>?, replay: [[UInt8]])
    case commands(worker: Int, [WorkerCommand])
    case log(LogLevel, String, [(String, String)])
    case close(ConnectionID)
    /// All rooms have ended after `shutdown`: the process may exit.
    case exit
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
