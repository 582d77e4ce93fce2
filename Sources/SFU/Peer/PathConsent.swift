import RTP
import WorkerInterface

/// The peer's consent to being sent media on a UDP path (RFC 7675), and our check that asks for it.
///
/// Consent begins with an answer to a check of ours, or with a handshake on that path, and lasts
/// for 30 s. Nothing else counts: a participant can forge the source of anything that it sends, but
/// answers only what has reached it. A TCP connection needs no consent: its peer is at its other
/// end.
struct PathConsent {
    /// How long one answer is good for, in milliseconds (RFC 7675 §5.1).
    static let lifetimeMilliseconds: Int64 = 30_000
    /// Between two checks, in milliseconds, give or take a fifth (RFC 7675 §5.1).
    static let intervalMilliseconds: Int64 = 5_000
    /// From a check without an answer to its repetition, in milliseconds, and how often that is
    /// done: one packet that is lost must not count for five seconds.
    static let retryMilliseconds: Int64 = 500
    static let retries = 3
    /// Between two checks where there is no consent, in milliseconds: each needs a message from
    /// there that is authentic, so that forged ones cost no more than they bring.
    static let repeatMilliseconds: Int64 = 50

    /// The address at which the peer has proven to be, until that is too long ago.
    private(set) var path: Path?
    private var given = Instant(nanoseconds: 0)
    /// The nonce of the check under way, where it went, and since when it is in use: what is seen
    /// at one address proves nothing at another.
    private var check: (nonce: UInt64, path: Path, madeAt: Instant)?
    private var asked = Instant(nanoseconds: .min / 2)
    /// How often the check under way has been repeated.
    private var repeats = 0
    /// When the next check is due, or consent ends.
    private(set) var due: Instant?

    /// Notes proof that the peer is at `path`.
    mutating func give(_ path: Path, at now: Instant, random: UInt64) {
        self.path = path
        given = now
        check = nil
        plan(after: now, random: random)
    }

    /// Whether a nonce is that of the check under way, and an answer from `path` still counts; it
    /// does once, as `give` forgets the check.
    func isAsked(_ nonce: UInt64, on path: Path, at now: Instant) -> Bool {
        guard let check, check.nonce == nonce, check.path == path else { return false }
        return now.milliseconds(since: asked) <= PathMove.answerMilliseconds
    }

    /// Whether consent has ended.
    func isOver(at now: Instant) -> Bool {
        path != nil && now.milliseconds(since: given) >= Self.lifetimeMilliseconds
    }

    /// Notes that a check leaves for `target`.
    ///
    /// One that is repeated before its answer can have come keeps its nonce.
    /// - Returns: The nonce, or `nil` where the check before has only just left.
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

    /// Ends consent: media stops.
    mutating func end() {
        path = nil
        due = nil
    }

    /// Leaves out a time in which the process stood still.
    mutating func forgive(_ nanoseconds: Int64, at now: Instant) {
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

extension Core {
    /// Notes proof that the peer is at the path in use: media may go there.
    mutating func prove(_ transport: Int, at now: Instant) {
        guard let path = transports[transport].path else { return }
        transports[transport].consent.give(path, at: now, random: random.next())
        updateDestination(of: transport)
        heard(from: transport, at: now)
        schedule(transport)
    }

    /// Asks again for consent where there is none: something authentic came from the path in use.
    mutating func seekConsent(of transport: Int, at now: Instant, into output: inout Batch) {
        guard transports[transport].lacksConsent else { return }
        askConsent(of: transport, at: now, into: &output)
    }

    /// Does what is due of the consent to the path in use.
    mutating func expireConsent(of transport: Int, at now: Instant, into output: inout Batch) {
        guard !transports[transport].consent.isOver(at: now) else {
            return endConsent(of: transport)
        }
        askConsent(of: transport, at: now, into: &output)
    }

    private mutating func askConsent(
        of transport: Int,
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

    /// Takes note that the path in use is another than before, without a word from the peer.
    ///
    /// Consent to it may be of long ago.
    mutating func reviewConsent(of transport: Int) {
        if transports[transport].consent.isOver(at: now) { transports[transport].consent.end() }
        updateDestination(of: transport)
        schedule(transport)
    }

    /// Media stops until the peer has proven again to be there (RFC 7675 §5.2).
    private mutating func endConsent(of transport: Int) {
        statistics.consentsEnded &+= 1
        transports[transport].consent.end()
        updateDestination(of: transport)
        guard case .connected = transports[transport].state else { return }
        transports[transport].state = .reconnecting
        emit(.transport(transports[transport].id, .reconnecting))
    }
}
