import ControlPlane

/// Source of a readiness report of the control thread's poller.
enum PollerToken: Equatable {
    case listener, signals, http
    case worker(Int)
    case connection(ConnectionID)

    /// Encoded token: the kind in the low byte, the number above it.
    var rawValue: UInt64 {
        switch self {
        case .listener: 0
        case .signals: 1
        case .http: 2
        case .worker(let index): UInt64(index) << 8 | 3
        case .connection(let id): id.rawValue << 8 | 4
        }
    }

    init?(rawValue: UInt64) {
        switch rawValue & 0xff {
        case 0: self = .listener
        case 1: self = .signals
        case 2: self = .http
        case 3: self = .worker(Int(rawValue >> 8))
        case 4: self = .connection(ConnectionID(rawValue: rawValue >> 8))
        default: return nil
        }
    }
}
