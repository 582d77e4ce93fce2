import SFU

/// Interface that `sfu-bench` needs to an SFU that it measures.
///
/// The bench owns all media, sockets, ICE, DTLS and SRTP of the clients; an adapter owns only the
/// SFU's process and its signalling. The adapter decides which side offers: it gets one side's
/// parameters and returns the other's.
///
/// The bench guarantees:
/// - `start` is called first and once, `stop` last and always, also after an error or `^C`.
/// - Calls for one participant are sequential; those for different participants are concurrent, at
///   most 64 at a time.
/// - For all publishers that a `watch` names, `join` has returned, and ICE and DTLS are complete.
///   They may not have sent a packet yet.
/// - A `LocalTransport` belongs to one call; its fragment and its address are unique. Its peer
///   answers checks from the moment the call returns; earlier datagrams are dropped.
/// - After `join` or `watch` returned a `RemoteTransport` the bench sends checks at once. The SFU
///   must know the credentials before that.
///
/// A call that fails throws an `AdapterError` with the reason in one line; the scenario then fails.
protocol Adapter: Sendable {
    /// Name in command lines, tables and charts, such as `janus`.
    var name: String { get }

    /// Starts the SFU on loopback addresses only and on ports that the kernel chose.
    ///
    /// Returns once the SFU accepts calls.
    func start(_ launch: Launch) async throws -> RunningSFU

    /// Stops the SFU and waits for its processes; files go with `Launch.directory`.
    func stop() async

    /// Creates a room for up to `participants` participants.
    func makeRoom(_ room: String, participants: Int) async throws
    /// Ends a room with all its connections.
    func closeRoom(_ room: String) async throws

    /// Adds a participant to a room, with its publication.
    func join(_ request: JoinRequest) async throws -> JoinReply

    /// Subscribes a joined participant to others; called at most once for each.
    func watch(_ request: WatchRequest) async throws -> WatchReply

    /// Removes a participant from its room.
    func leave(room: String, participant: String) async throws

    /// Returns the delays inside the SFU since its start, or `nil` if it does not report them.
    func forwardingDelay() async throws -> DelayBuckets?
}

extension Adapter {
    func forwardingDelay() async throws -> DelayBuckets? { nil }
}

/// Reason why an SFU could not be driven, in one line.
struct AdapterError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Parameters for starting an SFU.
struct Launch: Sendable {
    /// Forwarding threads; ignored by an SFU that has no such setting.
    var workers = 1
    var profile = BenchProfile.gcm
    /// An empty directory for this SFU's sockets, configuration and logs.
    var directory: String
    /// Executable to use instead of the adapter's default.
    var executable: String?
}

/// SRTP profile that peers offer; they offer no other.
enum BenchProfile: String, Sendable, CaseIterable {
    /// AEAD_AES_128_GCM (RFC 7714).
    case gcm
    /// AES_CM_128_HMAC_SHA1_80 (RFC 3711).
    case cm

    var srtp: SRTPProfile { self == .gcm ? .aeadAes128Gcm : .aes128CmSha1_80 }
}

/// A started SFU.
struct RunningSFU: Sendable {
    /// Processes whose CPU time and resident memory are counted as the SFU's.
    var processes: [Int32]
    /// Program and version for the report.
    var version: String
}

/// Histogram of packet delays, as in Prometheus.
struct DelayBuckets: Sendable, Equatable {
    /// Upper bounds in seconds, ascending; the last may be infinite.
    var bounds: [Double]
    /// Packets within each bound but above the previous one.
    var counts: [UInt64]
}

/// The SFUs that can be measured.
enum Adapters {
    /// SFUs other than sfud, by the names that `--against` takes.
    static let rivals = ["janus", "janus-threads"]

    static func rival(_ name: String) -> (any Adapter)? {
        switch name {
        case "janus": JanusAdapter(name: name)
        case "janus-threads": JanusAdapter(name: name, hasThreadPerTransport: true)
        default: nil
        }
    }
}
