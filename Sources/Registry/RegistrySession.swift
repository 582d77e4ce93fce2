internal import CNATS
import Kernel
import Nodes

/// Connection to the broker, and the calls on it.
///
/// The library's objects may be used by several threads. They are made once, as the library
/// reconnects by itself, and again after it has given up: it closes a connection for good when a
/// server has refused the credentials twice. Closed ones live on until the process ends, too, as
/// another thread may be in a call on them.
@safe
final class RegistrySession: @unchecked Sendable {
    @safe
    private struct Handles {
        var connection: OpaquePointer?
        var stream: OpaquePointer?
    }

    let settings: RegistrySettings
    private let name: String
    private let handles = Locked(Handles())

    init(_ settings: RegistrySettings, name: String) {
        self.settings = settings
        self.name = name
    }

    var isOpen: Bool { handles.withLock { Self.isOpen($0) } }

    private static func isOpen(_ handles: Handles) -> Bool {
        guard unsafe handles.stream != nil else { return false }
        return unsafe !natsConnection_IsClosed(handles.connection)
    }

    /// Brokers that keep each record of what this node creates.
    var replicas: Int32 { Int32(clamping: settings.replicas) }

    var stream: OpaquePointer? { unsafe handles.withLock { unsafe $0.stream } }

    /// Connects if there is no connection; returns whether there is one.
    func open() -> Bool { connect() == NATS_OK }

    private func connect() -> natsStatus {
        handles.withLock { handles in
            guard !Self.isOpen(handles) else { return NATS_OK }
            return unsafe withStrings { strings in
                var connection: OpaquePointer?
                var stream: OpaquePointer?
                let status = unsafe registry_connect(
                    &strings,
                    Self.waitMilliseconds,
                    &connection,
                    &stream
                )
                unsafe handles.connection = connection
                unsafe handles.stream = stream
                return status
            }
        }
    }

    /// Lends the settings as C strings.
    private func withStrings<Result>(_ body: (inout registry_settings) -> Result) -> Result {
        let texts = [
            settings.urls, name, settings.credentials, settings.authority, settings.certificate,
            settings.key,
        ]
        let copies = unsafe texts.map { text in unsafe text.flatMap { unsafe strdup($0) } }
        defer { unsafe copies.forEach { unsafe free($0) } }
        var strings = unsafe registry_settings(
            urls: copies[0],
            client: copies[1],
            credentials: copies[2],
            authority: copies[3],
            certificate: copies[4],
            key: copies[5]
        )
        return unsafe body(&strings)
    }

    /// Makes the bucket if it is missing; returns whether it is there.
    func ensureBucket() -> Bool {
        guard let stream = unsafe stream else { return false }
        var store: OpaquePointer?
        let status = unsafe registry_open_bucket(stream, Self.bucket, replicas, &store)
        unsafe kvStore_Destroy(store)
        return status == NATS_OK
    }

    func write(_ key: String, _ value: [UInt8]?, _ condition: WriteCondition) -> RegistryOutcome {
        let expected: UInt64 =
            switch condition {
            case .always, .absent: 0
            case .revision(let revision): revision
            }
        return publish(
            Self.subject(of: key),
            value,
            isAny: condition == .always,
            expected: expected
        )
    }

    /// Publishes to a subject whose last message must have the sequence `expected`, 0 for none,
    /// unless any will do.
    func publish(
        _ subject: String,
        _ value: [UInt8]?,
        isAny: Bool,
        expected: UInt64
    ) -> RegistryOutcome {
        guard let stream = unsafe stream else { return .failed }
        var revision: UInt64 = 0
        let characters = value.map { $0.map(CChar.init(bitPattern:)) }
        let outcome = unsafe registry_write(
            stream,
            subject,
            characters,
            Int32(clamping: characters?.count ?? 0),
            isAny,
            expected,
            &revision
        )
        switch outcome {
        case REGISTRY_DONE: return .stored(revision: revision)
        case REGISTRY_CONFLICT: return .conflict
        default: return .failed
        }
    }

    func read(_ key: String) -> RegistryOutcome {
        readLast(of: Self.subject(of: key), in: Self.bucketStream)
    }

    /// Removes the mark of a deletion; what was written since stays.
    ///
    /// The library's own call (`kvStore_PurgeDeletes`) looks for marks first and then removes all
    /// that their keys have: a room whose name was used again in between would lose its record.
    func forget(_ key: String, _ revision: UInt64) -> RegistryOutcome {
        guard let stream = unsafe stream else { return .failed }
        let status = unsafe registry_purge(
            stream,
            Self.bucketStream,
            Self.subject(of: key),
            revision + 1,
            Self.waitMilliseconds
        )
        return status == NATS_OK ? .stored(revision: revision) : .failed
    }

    /// Reads the last message of a subject.
    func readLast(of subject: String, in name: String) -> RegistryOutcome {
        guard let stream = unsafe stream else { return .failed }
        var message: OpaquePointer?
        var revision: UInt64 = 0
        var isDeleted = false
        let outcome = unsafe registry_read(
            stream,
            name,
            subject,
            &message,
            &revision,
            &isDeleted
        )
        defer { unsafe natsMsg_Destroy(message) }
        switch outcome {
        case REGISTRY_DONE:
            let bytes = unsafe UnsafeRawBufferPointer(
                start: natsMsg_GetData(message),
                count: Int(natsMsg_GetDataLength(message))
            )
            return unsafe .found(revision: revision, value: isDeleted ? nil : Array(bytes))
        case REGISTRY_ABSENT: return .absent
        default: return .failed
        }
    }

    /// Reports the bucket's entries and then each change, until `report` says that the bucket has
    /// to be read again, or the broker is silent.
    ///
    /// - Returns: the reason for which the broker cannot be reached; `nil` if it can.
    func watch(_ report: (RegistryUpdate) -> Bool) -> String? {
        let status = connect()
        guard status == NATS_OK, let stream = unsafe stream else {
            return cause(ofConnecting: status)
        }
        var store: OpaquePointer?
        var watcher: OpaquePointer?
        defer {
            unsafe kvWatcher_Destroy(watcher)
            unsafe kvStore_Destroy(store)
        }
        var result = unsafe registry_open_bucket(stream, Self.bucket, replicas, &store)
        if result == NATS_OK {
            result = unsafe registry_watch(store, Self.waitMilliseconds, &watcher)
        }
        guard result == NATS_OK else { return cause(ofCall: result) }
        guard report(.snapshot) else { return nil }
        while true {
            var entry: OpaquePointer?
            // This node's own record comes each second, so silence means that the watch is dead.
            result = unsafe kvWatcher_Next(&entry, watcher, Self.silenceMilliseconds)
            guard result == NATS_OK else {
                return result == NATS_TIMEOUT ? nil : cause(ofCall: result)
            }
            defer { unsafe kvEntry_Destroy(entry) }
            guard unsafe report(update(of: entry)) else { return nil }
        }
    }

    /// Returns what an entry of the watch says; none marks the end of the present entries.
    private func update(of entry: OpaquePointer?) -> RegistryUpdate {
        guard let entry = unsafe entry, let key = unsafe kvEntry_Key(entry) else {
            return .complete
        }
        let bytes = unsafe UnsafeRawBufferPointer(
            start: kvEntry_Value(entry),
            count: Int(kvEntry_ValueLen(entry))
        )
        let isPresent = unsafe kvEntry_Operation(entry) == kvOp_Put
        return unsafe .entry(
            key: String(cString: key),
            revision: kvEntry_Revision(entry),
            value: isPresent ? Array(bytes) : nil
        )
    }

    private static func subject(of key: String) -> String { "$KV.\(bucket).\(key)" }

    /// Name of the bucket that all nodes of a cluster share.
    private static let bucket = "sfud"
    /// Name of the stream that NATS has for the bucket.
    private static let bucketStream = "KV_" + bucket
    /// Longest wait for the broker's answer to one request.
    static let waitMilliseconds: Int64 = 1_500
    private static let silenceMilliseconds: Int64 = 3_000
}
