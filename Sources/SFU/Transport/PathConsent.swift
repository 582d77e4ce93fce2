import RTP
import WorkerInterface

/// The peer's consent to receive media on a UDP path (RFC 7675), and our consent checks.
///
/// Consent begins with an answer to one of our checks, or with a handshake on that path, and lasts
/// 30 s. Nothing else counts: a participant can forge the source address of any packet, but can
/// answer only packets that reach it. A TCP connection needs no consent, because its peer is at its
/// other end.
struct PathConsent {
    /// Lifetime of consent after one answer, in milliseconds (RFC 7675 §5.1).
    static let lifetimeMilliseconds: Int64 = 30_000
    /// Interval between checks, in milliseconds, plus or minus a fifth (RFC 7675 §5.1).
    static let intervalMilliseconds: Int64 = 5_000
    /// Delay before an unanswered check is sent again, in milliseconds, and the number of retries.
    ///
    /// Without retries, one lost packet would cost a whole interval of five seconds.
    static let retryMilliseconds: Int64 = 500
    static let retries = 3
    /// Minimum interval between checks on a path without consent, in milliseconds.
    ///
    /// Each such check is triggered by an authenticated message from that path, so forged messages
    /// yield no amplification.
    static let repeatMilliseconds: Int64 = 50

    /// Path on which the peer has consented, until consent expires.
    private(set) var path: Path?
    private(set) var given = Instant(nanoseconds: 0)
    /// Nonce of the outstanding check, its path, and the time at which the nonce was created.
    ///
    /// An answer from another path does not count.
    private var check: (nonce: UInt64, path: Path, madeAt: Instant)?
    private var asked = Instant(nanoseconds: .min / 2)
    /// Number of retransmissions of the outstanding check.
    private var repeats = 0
    /// Deadline of the next check or of the end of consent, whichever is earlier.
    private(set) var due: Instant?

    /// Records proof that the peer is at `path`, and renews consent.
    mutating func renew(_ path: Path, at now: Instant, random: UInt64) {
        self.path = path
        given = now
        check = nil
        plan(after: now, random: random)
    }

    /// Continues consent that the peer gave to an earlier process.
    ///
    /// A check that was due meanwhile is sent within half a second: processes that live shorter
    /// than the interval would else let consent expire.
    mutating func resume(_ path: Path, given: Instant, at now: Instant, random: UInt64) {
        self.path = path
        self.given = min(given, now)
        let spread = Int64(truncatingIfNeeded: random & 0x1ff)
        let next = max(
            self.given.advanced(milliseconds: Self.intervalMilliseconds),
            now.advanced(milliseconds: spread)
        )
        due = min(next, self.given.advanced(milliseconds: Self.lifetimeMilliseconds))
    }

    /// Returns whether `nonce` belongs to the outstanding check on `path` and the answer is in
    /// time.
    ///
    /// An answer counts once, as `renew` clears the check.
    func matchesCheck(_ nonce: UInt64, on path: Path, at now: Instant) -> Bool {
        guard let check, check.nonce == nonce, check.path == path else { return false }
        return now.milliseconds(since: asked) <= PathMove.answerMilliseconds
    }

    /// Returns the time since the outstanding check was sent, in nanoseconds; `nil` if it was sent
    /// again, as the answer may be to either.
    func roundTrip(at now: Instant) -> Int64? {
        check == nil || repeats > 0 ? nil : now.nanoseconds(since: asked)
    }

    /// Whether consent has ended.
    func hasExpired(at now: Instant) -> Bool {
        path != nil && now.milliseconds(since: given) >= Self.lifetimeMilliseconds
    }

    /// Records that a check is sent to `target`.
    ///
    /// A check that is sent again before its answer can have arrived keeps its nonce.
    /// - Returns: The nonce, or `nil` if the previous check was sent too recently.
    mutating func ask(
        _ target: Path,
        nonce: @autoclosure () -> UInt64,
        at now: Instant,
        random: UInt64
    ) -> UInt64? {
        guard now.milliseconds(since: asked) >= Self.repeatMilliseconds else { return nil }
        asked = now
        defer { if path != nil { plan(after: now, random: random) } }
        if let check, check.path == target,
            now.milliseconds(since: check.madeAt) < PathMove.nonceMilliseconds
        {
            repeats &+= 1
            return check.nonce
        }
        let made = nonce()
        check = (made, target, now)
        repeats = 0
        return made
    }

    /// Ends consent, which stops media.
    mutating func end() {
        path = nil
        due = nil
    }

    /// Extends consent by a period in which the process was suspended.
    mutating func extend(_ nanoseconds: Int64, at now: Instant) {
        given = min(given.advanced(nanoseconds: nanoseconds), now)
    }

    private mutating func plan(after now: Instant, random: UInt64) {
        let fifth = Self.intervalMilliseconds / 5
        let spread = Int64(random % UInt64(2 * fifth)) - fifth
        let isRepeated = check != nil && repeats < Self.retries
        let wait = isRepeated ? Self.retryMilliseconds : Self.intervalMilliseconds + spread
        let next = now.advanced(milliseconds: wait)
        due = min(next, given.advanced(milliseconds: Self.lifetimeMilliseconds))
    }
}

extension Transports {
    /// Records proof that the peer is at the selected path, which allows media to be sent there.
    mutating func grantConsent(_ transport: TransportIndex, at now: Instant) {
        guard let path = transports[transport].path else { return }
        transports[transport].consent.renew(path, at: now, random: random.next())
        updateDestination(of: transport)
        heard(from: transport, at: now)
        schedule(transport, at: now)
    }

    /// Sends a consent check if consent is missing, after an authenticated packet from the selected
    /// path.
    mutating func requestConsent(
        of transport: TransportIndex,
        at now: Instant,
        into output: inout Batch
    ) {
        guard transports[transport].lacksConsent else { return }
        askConsent(of: transport, at: now, into: &output)
    }

    /// Sends the consent check that is due on the selected path, or ends consent that has expired.
    mutating func expireConsent(
        of transport: TransportIndex,
        at now: Instant,
        into output: inout Batch
    ) {
        guard !transports[transport].consent.hasExpired(at: now) else {
            return endConsent(of: transport)
        }
        askConsent(of: transport, at: now, into: &output)
    }

    private mutating func askConsent(
        of transport: TransportIndex,
        at now: Instant,
        into output: inout Batch
    ) {
        guard let path = transports[transport].path, output.free > 0 else { return }
        let nonce = transports[transport].consent.ask(
            path,
            nonce: secrets.next(),
            at: now,
            random: random.next()
        )
        guard let nonce else { return }
        sendCheck(nonce, to: path, of: transport, isCurrent: false, into: &output)
    }

    /// Updates consent after the selected path changed without an action of the peer.
    ///
    /// Consent for the new path may have expired long ago.
    mutating func updateConsent(of transport: TransportIndex, at now: Instant) {
        if transports[transport].consent.hasExpired(at: now) { transports[transport].consent.end() }
        updateDestination(of: transport)
        schedule(transport, at: now)
    }

    /// Ends consent and stops media until the peer proves again that it is there (RFC 7675 §5.2).
    private mutating func endConsent(of transport: TransportIndex) {
        counters.consentsEnded &+= 1
        transports[transport].consent.end()
        updateDestination(of: transport)
        guard case .connected = transports[transport].state else { return }
        transports[transport].state = .reconnecting
        note(.reconnecting, of: transport)
    }
}
