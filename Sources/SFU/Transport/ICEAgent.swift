import RTP
import WorkerInterface

/// ICE-lite agent of one session (RFC 8445 §2.4, §7.3), which answers checks and sends its own only
/// to verify an address.
///
/// It keeps the validated paths and the one that the peer nominated. An ICE restart (RFC 8445 §9)
/// changes only the credentials: the selected path stays until a new check.
///
/// A check authenticates its author, not its source address. An onlooker can replay it from
/// elsewhere, and a participant can forge another's address. So media moves to another address only
/// when the peer has proven that it is there (`PathMove`).
struct ICEAgent {
    /// Credentials from before a restart.
    struct PreviousCredentials {
        var localFragment: [UInt8]
        var localPassword: [UInt8]
        var remoteFragment: [UInt8]
        var remotePassword: [UInt8]
    }

    private(set) var credentials: ICECredentials
    /// UTF-8 bytes of the HMAC key and of both halves of USERNAME.
    private(set) var localPassword: [UInt8]
    private(set) var localFragment: [UInt8]
    private var remoteFragment: [UInt8]
    /// Credentials from before the last restart, valid only on paths that are already validated.
    private(set) var previous: PreviousCredentials?
    private(set) var paths: [Path] = []
    private(set) var selected: Path?
    /// Path that the peer nominated but has not yet proven to be at.
    private(set) var move: PathMove?
    /// Time at which we last sent a check to such a path.
    private var lastMoveCheck = Instant(nanoseconds: .min / 2)

    /// Checks processed in the second that began at `secondStart`, from validated and other
    /// addresses.
    ///
    /// They are counted apart, so a flood from unknown addresses cannot block validated ones.
    private var knownChecks = 0
    private var otherChecks = 0
    private var secondStart = Instant(nanoseconds: .min / 2)

    init(_ credentials: ICECredentials) {
        self.credentials = credentials
        localPassword = Array(credentials.localPassword.utf8)
        localFragment = Array(credentials.localFragment.utf8)
        remoteFragment = Array(credentials.remoteFragment.utf8)
    }

    /// Replaces the credentials; the previous ones stay valid on paths that are already validated.
    mutating func restart(with credentials: ICECredentials) {
        previous = PreviousCredentials(
            localFragment: localFragment,
            localPassword: localPassword,
            remoteFragment: remoteFragment,
            remotePassword: remotePassword(isCurrent: true)
        )
        let kept = (paths, selected)
        self = Self(credentials, previous: previous)
        (paths, selected) = kept
    }

    private init(_ credentials: ICECredentials, previous: PreviousCredentials?) {
        self.init(credentials)
        self.previous = previous
    }

    /// Returns whether `fragment` is the peer's current ICE ufrag.
    func isPeer(_ fragment: Span<UInt8>) -> Bool { Self.equal(remoteFragment, fragment) }

    /// Returns whether `fragment` is our current ICE ufrag.
    func isLocal(_ fragment: Span<UInt8>) -> Bool { Self.equal(localFragment, fragment) }

    /// Returns whether `fragment` was our ICE ufrag before the last restart.
    func wasLocal(_ fragment: Span<UInt8>) -> Bool {
        guard let previous else { return false }
        return Self.equal(previous.localFragment, fragment)
    }

    /// Returns the password that authenticates the peer's checks.
    func password(isCurrent: Bool) -> [UInt8] {
        isCurrent ? localPassword : previous?.localPassword ?? localPassword
    }

    private static func equal(_ bytes: [UInt8], _ other: Span<UInt8>) -> Bool {
        guard bytes.count == other.count else { return false }
        for index in other.indices where bytes[index] != other[index] { return false }
        return true
    }

    /// Removes a path that another transport now holds or that has closed.
    mutating func forget(_ path: Path) {
        paths.removeAll { $0 == path }
        if selected == path { selected = paths.last }
        if move?.path == path { move = nil }
    }

    mutating func forgetPaths() {
        paths = []
        selected = nil
        move = nil
    }

    /// Records the path that media should move to.
    ///
    /// Returns the nonce of our own check, or `nil` if one was sent too recently.
    mutating func beginMove(
        _ path: Path,
        nonce: @autoclosure () -> UInt64,
        at now: Instant
    ) -> UInt64? {
        guard now.milliseconds(since: lastMoveCheck) >= PathMove.repeatMilliseconds else {
            return nil
        }
        lastMoveCheck = now
        if let move, move.path == path,
            now.milliseconds(since: move.madeAt) < PathMove.nonceMilliseconds
        {
            self.move?.askedAt = now
            return move.nonce
        }
        let made = PathMove(path: path, nonce: nonce(), madeAt: now, askedAt: now)
        move = made
        return made.nonce
    }

    /// Returns whether `nonce` belongs to our check on that path and the answer is in time.
    func isMove(_ nonce: UInt64, to path: Path, at now: Instant) -> Bool {
        guard let move, move.path == path, move.nonce == nonce else { return false }
        return now.milliseconds(since: move.askedAt) <= PathMove.answerMilliseconds
    }

    /// Returns the password that authenticates our own checks: the peer's (RFC 8445 §7.1.1).
    func remotePassword(isCurrent: Bool) -> [UInt8] {
        guard !isCurrent, let previous else { return Array(credentials.remotePassword.utf8) }
        return previous.remotePassword
    }

    /// Returns the USERNAME of our own checks: the peer's ufrag comes first.
    func outgoingUsername(isCurrent: Bool) -> [UInt8] {
        guard !isCurrent, let previous else { return remoteFragment + [0x3a] + localFragment }
        return previous.remoteFragment + [0x3a] + previous.localFragment
    }

    func isValidated(_ path: Path) -> Bool { paths.contains(path) }

    /// Counts a check from `path`; returns whether it is within the limit per second.
    ///
    /// `limit` holds for all validated addresses together; others share 20 times as much.
    mutating func admitCheck(from path: Path, limit: Int, at now: Instant) -> Bool {
        if now.milliseconds(since: secondStart) >= 1_000 {
            secondStart = now
            knownChecks = 0
            otherChecks = 0
        }
        if isValidated(path) {
            knownChecks &+= 1
            return knownChecks <= limit
        }
        otherChecks &+= 1
        return otherChecks <= limit &* Self.unvalidatedFactor
    }

    /// Factor by which the limit for unvalidated addresses exceeds `limit`.
    ///
    /// So many addresses at their own limit do not block a further one.
    private static let unvalidatedFactor = 20

    private mutating func select(_ path: Path) {
        selected = path
        move = nil
    }

    /// Records a valid check from `path`; returns the path that was evicted to make room, if any.
    mutating func validated(
        _ path: Path,
        isNominated: Bool,
        underCurrentCredentials: Bool,
        limit: Int
    ) -> Path? {
        if underCurrentCredentials { previous = nil }
        var evicted: Path?
        if !paths.contains(path) {
            if paths.count >= limit, let index = paths.firstIndex(where: { $0 != selected }) {
                evicted = paths.remove(at: index)
            }
            paths.append(path)
        }
        if isNominated || selected == nil { select(path) }
        return evicted
    }
}
