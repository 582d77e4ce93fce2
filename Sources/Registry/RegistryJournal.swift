internal import CNATS
import Nodes

// Rooms' journals: one stream, with one subject a room.
extension RegistrySession {
    /// Makes the stream if it is missing; returns whether it is there.
    func ensureJournal() -> Bool {
        guard let stream = unsafe stream else { return false }
        let status = unsafe registry_open_journal(
            stream,
            Self.journal,
            Self.prefix + "*",
            Self.journalBytes,
            replicas
        )
        return status == NATS_OK
    }

    /// Appends a message to a room's journal.
    func append(_ room: String, _ message: [UInt8], last: UInt64) -> RegistryOutcome {
        publish(Self.journalSubject(of: room), message, isAny: false, expected: last)
    }

    /// Reads the last message of a room's journal.
    func readEnd(of room: String) -> RegistryOutcome {
        readLast(of: Self.journalSubject(of: room), in: Self.journal)
    }

    /// Removes what a room's journal has before a sequence; if that fails, more is kept.
    func purge(_ room: String, before sequence: UInt64) -> RegistryOutcome {
        guard let stream = unsafe stream else { return .failed }
        let status = unsafe registry_purge(
            stream,
            Self.journal,
            Self.journalSubject(of: room),
            sequence,
            Self.waitMilliseconds
        )
        return status == NATS_OK ? .stored(revision: sequence) : .failed
    }

    /// Lists the rooms that have journals.
    func listJournals() -> RegistryOutcome {
        guard let stream = unsafe stream else { return .failed }
        var info: UnsafeMutablePointer<jsStreamInfo>?
        let status = unsafe registry_list(
            stream,
            Self.journal,
            Self.prefix + "*",
            Self.waitMilliseconds,
            &info
        )
        guard status == NATS_OK else { return .failed }
        defer { unsafe jsStreamInfo_Destroy(info) }
        var rooms: [String] = []
        for index in unsafe 0..<registry_listed(info) {
            guard let subject = unsafe registry_subject(info, index) else { continue }
            let token = unsafe String(cString: subject).dropFirst(Self.prefix.count)
            if let room = RoomKey.room(of: String(token)) { rooms.append(room) }
        }
        return unsafe .journals(rooms, last: registry_end(info))
    }

    /// Reads all messages of a room's journal, up to the one that was the last when it began.
    func readJournal(of room: String) -> RegistryOutcome {
        guard let stream = unsafe stream else { return .failed }
        let last: UInt64
        switch readEnd(of: room) {
        case .found(let revision, _): last = revision
        case .absent: return .absent
        case .stored, .conflict, .journal, .journals, .failed: return .failed
        }
        var subscription: OpaquePointer?
        defer { unsafe natsSubscription_Destroy(subscription) }
        let status = unsafe registry_subscribe(
            stream,
            Self.journal,
            Self.journalSubject(of: room),
            &subscription
        )
        guard status == NATS_OK else { return .failed }
        var messages: [[UInt8]] = []
        var bytes = 0
        while bytes <= Self.readLimit {
            var message: OpaquePointer?
            guard
                unsafe natsSubscription_NextMsg(&message, subscription, Self.waitMilliseconds)
                    == NATS_OK
            else { return .failed }
            defer { unsafe natsMsg_Destroy(message) }
            let text = unsafe UnsafeRawBufferPointer(
                start: natsMsg_GetData(message),
                count: Int(natsMsg_GetDataLength(message))
            )
            messages.append(unsafe Array(text))
            bytes += text.count
            let sequence = unsafe registry_sequence(message)
            guard sequence < last else { return .journal(messages, last: sequence) }
        }
        // It is too long, and will be the next time: nobody can go on with that room.
        return .journal([], last: last)
    }

    private static func journalSubject(of room: String) -> String {
        prefix + RoomKey.token(of: room)
    }

    /// Name of the stream that all nodes of a cluster share.
    private static let journal = "sfud-journal"
    private static let prefix = "sfud.journal."
    /// Most bytes of all journals; beyond, nothing more is stored.
    private static let journalBytes: Int64 = 1 << 30
    /// Most bytes of one room's journal that are read.
    private static let readLimit = 64 << 20
}
