import SFU

/// What `sfu-bench` needs of an SFU that it measures.
///
/// The bench owns all media, sockets, ICE, DTLS and SRTP of the clients; an adapter owns the
/// SFU's process and its signalling, and nothing else. Whether our side offers or answers is its
/// own business: it gets one side's parameters and returns the other's.
///
/// What the bench guarantees:
/// - `start` comes first and once, `stop` last and always, also after an error or `^C`.
/// - Calls for one participant come one after another; those of different participants
///   concurrently, at most 64 under way at a time.
/// - `join` of all publishers that a `watch` names has returned, and their ICE and DTLS are
///   complete. They may not have sent a packet yet.
/// - A `LocalTransport` belongs to one call, has a fragment and an address that no other has, and
///   its peer answers checks from the moment the call returns. What came earlier was dropped.
/// - After `join` or `watch` returned a `RemoteTransport` the bench begins with checks at once. A
///   reply therefore means that the SFU knows the credentials.
///
/// A call that fails throws an `AdapterError` that says why in a line; the scenario then fails.
protocol Adapter: Sendable {
    /// As command lines, tables and charts name it, such as `janus`.
    var name: String { get }

    /// Starts the SFU with loopback addresses only and ports that the kernel chose; returns once
    /// it takes calls.
    func start(_ launch: Launch) async throws -> RunningSFU

    /// Ends what `start` began, waiting for its processes; files go with `Launch.directory`.
    func stop() async

    /// Makes a room for up to `participants` participants.
    func makeRoom(_ room: String, participants: Int) async throws
    /// Ends a room and all that is connected in it.
    func closeRoom(_ room: String) async throws

    /// Takes a participant into a room, with what it publishes.
    func join(_ request: JoinRequest) async throws -> JoinReply

    /// Lets a participant that has joined watch others; called at most once for each.
    func watch(_ request: WatchRequest) async throws -> WatchReply

    /// Takes a participant out of its room.
    func leave(room: String, participant: String) async throws

    /// How long packets were under way inside the SFU since its start, where it tells; `nil` else.
    func forwardingDelay() async throws -> DelayBuckets?
}

extension Adapter {
    func forwardingDelay() async throws -> DelayBuckets? { nil }
}

/// Why an SFU could not be driven, in one line.
struct AdapterError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// How to start an SFU.
struct Launch: Sendable {
    /// Threads that forward; an SFU that cannot be told so runs as it does.
    var workers = 1
    var profile = BenchProfile.gcm
    /// An empty directory of its own for sockets, configuration and logs.
    var directory: String
    /// Another executable than the one that the adapter would take.
    var executable: String?
}

/// Which SRTP profile peers offer; they offer no other.
enum BenchProfile: String, Sendable, CaseIterable {
    /// AEAD_AES_128_GCM (RFC 7714).
    case gcm
    /// AES_CM_128_HMAC_SHA1_80 (RFC 3711).
    case cm

    var srtp: SRTPProfile { self == .gcm ? .aeadAes128Gcm : .aes128CmSha1_80 }
}

/// What runs after `start`.
struct RunningSFU: Sendable {
    /// Processes whose CPU time and resident memory are the SFU's.
    var processes: [Int32]
    /// For the report: the program and its version.
    var version: String
}

/// Counts of packets by how long they took, as a Prometheus histogram has them.
struct DelayBuckets: Sendable, Equatable {
    /// Upper bounds in seconds, rising; the last may be infinite.
    var bounds: [Double]
    /// Packets within each bound and not within the one before it.
    var counts: [UInt64]
}
