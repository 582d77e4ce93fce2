import RTP
import WorkerInterface

/// The lite side of one ICE session (RFC 8445 §2.4, §7.3): it answers, and asks for one thing.
///
/// It keeps the addresses that passed a check and which of them the peer nominated. An ICE
/// restart (RFC 8445 §9) changes credentials only: the path in use stays until a new check.
///
/// A check says who made it, not where from: whoever has seen one can send it again from
/// elsewhere, and a participant can forge another's address on its own. So media that flows
/// moves to another address only when the peer has proven to be there (`PathMove`).
struct ICEAgent {
    /// Credentials from before a restart.
    struct Former {
        var localFragment: [UInt8]
        var localPassword: [UInt8]
        var remoteFragment: [UInt8]
        var remotePassword: [UInt8]
    }

    private(set) var credentials: ICECredentials
    /// Bytes of what HMAC is keyed with and of the two halves of USERNAME.
    private(set) var localPassword: [UInt8]
    private(set) var localFragment: [UInt8]
    private var remoteFragment: [UInt8]
    /// Those before the last restart; good for addresses that are validated already.
    private(set) var previous: Former?
    private(set) var paths: [Path] = []
    private(set) var selected: Path?
    /// Where the peer wants media to move to, until it has proven to be there.
    private(set) var move: PathMove?
    /// When a check of ours last left for such a place.
    private var wanted = Instant(nanoseconds: .min / 2)

    /// Checks looked at in the second that began at `secondStart`, from validated addresses and
    /// from others: a flood of the latter must not silence the former.
    private var knownChecks = 0
    private var otherChecks = 0
    private var secondStart = Instant(nanoseconds: .min / 2)

    init(_ credentials: ICECredentials) {
        self.credentials = credentials
        localPassword = Array(credentials.localPassword.utf8)
        localFragment = Array(credentials.localFragment.utf8)
        remoteFragment = Array(credentials.remoteFragment.utf8)
    }

    /// Takes new credentials; the old ones stay good for the addresses that have them.
    mutating func restart(with credentials: ICECredentials) {
        previous = Former(
            localFragment: localFragment,
            localPassword: localPassword,
            remoteFragment: remoteFragment,
            remotePassword: remotePassword(isCurrent: true)
        )
        let kept = (paths, selected)
        self = Self(credentials, previous: previous)
        (paths, selected) = kept
    }

    private init(_ credentials: ICECredentials, previous: Former?) {
        self.init(credentials)
        self.previous = previous
    }

    /// Whether the peer's half of USERNAME is the one it offered.
    func isPeer(_ fragment: Span<UInt8>) -> Bool { Self.equal(remoteFragment, fragment) }

    /// Whether this is our fragment now.
    func isLocal(_ fragment: Span<UInt8>) -> Bool { Self.equal(localFragment, fragment) }

    /// Whether it was ours until the last restart.
    func wasLocal(_ fragment: Span<UInt8>) -> Bool {
        guard let previous else { return false }
        return Self.equal(previous.localFragment, fragment)
    }

    /// What a check is authenticated with.
    func password(isCurrent: Bool) -> [UInt8] {
        isCurrent ? localPassword : previous?.localPassword ?? localPassword
    }

    private static func equal(_ bytes: [UInt8], _ other: Span<UInt8>) -> Bool {
        guard bytes.count == other.count else { return false }
        for index in other.indices where bytes[index] != other[index] { return false }
        return true
    }

    /// Another transport has this address now.
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

    /// Notes where media is to move to; returns the name of our own check, where one is due.
    mutating func want(
        _ path: Path,
        nonce: @autoclosure () -> UInt64,
        at now: Instant
    ) -> UInt64? {
        guard now.milliseconds(since: wanted) >= PathMove.repeatMilliseconds else { return nil }
        wanted = now
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

    /// Whether a nonce is that of our check to a new path, and an answer still counts.
    func isMove(_ nonce: UInt64, to path: Path, at now: Instant) -> Bool {
        guard let move, move.path == path, move.nonce == nonce else { return false }
        return now.milliseconds(since: move.askedAt) <= PathMove.answerMilliseconds
    }

    /// What our own check is authenticated with: the peer's password (RFC 8445 §7.1.1).
    func remotePassword(isCurrent: Bool) -> [UInt8] {
        guard !isCurrent, let previous else { return Array(credentials.remotePassword.utf8) }
        return previous.remotePassword
    }

    /// USERNAME of our own check: the peer's fragment first.
    func outgoingUsername(isCurrent: Bool) -> [UInt8] {
        guard !isCurrent, let previous else { return remoteFragment + [0x3a] + localFragment }
        return previous.remoteFragment + [0x3a] + previous.localFragment
    }

    func isValidated(_ path: Path) -> Bool { paths.contains(path) }

    /// Counts a check from `path` against the limit a second.
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
        return otherChecks <= limit &* Self.strangers
    }

    /// Addresses at their limit that do not silence another one that is new.
    private static let strangers = 20

    private mutating func select(_ path: Path) {
        selected = path
        move = nil
    }

    /// Notes that a check from `path` held; returns the address that had to make room, if any.
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
