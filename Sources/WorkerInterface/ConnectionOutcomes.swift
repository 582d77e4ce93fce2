/// Outcomes of the transports that offers have opened; resumed ones are not among them.
package struct ConnectionOutcomes: Hashable, Sendable {
    /// Cause for which a transport was never connected.
    package enum Failure: String, CaseIterable, Hashable, Sendable, BitwiseCopyable {
        /// No valid connectivity check arrived within `CoreLimits.timeoutMilliseconds`.
        case iceTimeout = "ice-timeout"
        /// A check arrived, but the peer began no DTLS handshake in that time.
        case dtlsTimeout = "dtls-timeout"
        /// The DTLS handshake failed, or the peer answered none of the retransmissions.
        case handshake = "dtls-handshake-failed"
        /// The peer's certificate is not the one that its offer names.
        case fingerprint = "fingerprint-mismatch"
        /// The peer supports none of our SRTP profiles.
        case profile = "no-srtp-profile"
        /// It was closed from our side before a valid check arrived.
        case closedBeforeICE = "closed-before-ice"
        /// It was closed from either side after a check and before the end of the handshake.
        case closedBeforeDTLS = "closed-before-dtls"

        package init(_ reason: DisconnectReason, hasPath: Bool) {
            switch reason {
            case .timeout: self = hasPath ? .dtlsTimeout : .iceTimeout
            // No worker tells of a lost node.
            case .closed, .nodeLost: self = .closedBeforeDTLS
            case .handshakeFailed: self = .handshake
            case .fingerprintMismatch: self = .fingerprint
            case .noSRTPProfile: self = .profile
            }
        }
    }

    /// Time until they were connected; its count is the number of those that were.
    package var seconds = Histogram(.connecting)
    /// Numbers of transports that were never connected.
    package private(set) var failures: [Failure: UInt64] = [:]
    /// Number of connected transports that ended because the peer fell silent.
    package var timedOut: UInt64 = 0
    /// Number of connected transports that the peer closed.
    package var closedByPeer: UInt64 = 0

    package init() {}

    package mutating func note(_ failure: Failure) { failures[failure, default: 0] &+= 1 }

    package static func += (total: inout Self, other: Self) {
        total.seconds += other.seconds
        total.failures.merge(other.failures) { $0 &+ $1 }
        total.timedOut &+= other.timedOut
        total.closedByPeer &+= other.closedByPeer
    }
}

/// Loss, jitter and round trips of all peers of a worker, by RTCP and connectivity checks.
///
/// An encoding or slot gives one sample a second while reports on it come, however many those are.
package struct PathSamples: Hashable, Sendable, BitwiseCopyable {
    /// Samples of one direction.
    package struct Direction: Hashable, Sendable, BitwiseCopyable {
        package var loss = Histogram(.loss)
        package var jitter = Histogram(.jitter)
        package var roundTrip = Histogram(.roundTrip)

        package init() {}

        /// Adds the figures of one report block (RFC 3550 §6.4.1).
        package mutating func add(fractionLost: UInt8, jitter ticks: UInt32, clockRate: Int) {
            loss.add(Double(fractionLost) / 256)
            if clockRate > 0 { jitter.add(Double(ticks) / Double(clockRate)) }
        }

        package static func += (total: inout Self, other: Self) {
            total.loss += other.loss
            total.jitter += other.jitter
            total.roundTrip += other.roundTrip
        }
    }

    /// Media from publishers, as the worker measures it.
    ///
    /// Round-trip times are those of consent checks, once in five seconds: a publisher may be sent
    /// nothing that it could report on.
    package var publishers = Direction()
    /// Media to viewers, as their receiver reports say.
    package var viewers = Direction()

    package init() {}

    package static func += (total: inout Self, other: Self) {
        total.publishers += other.publishers
        total.viewers += other.viewers
    }
}
