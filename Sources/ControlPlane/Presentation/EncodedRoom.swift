import Contract
import JSON

// The contract's results that contain a room, with its long lists already encoded.

/// Encodable form of `RoomInfo`.
struct EncodedRoom: Encodable {
    /// The room without its lists.
    var room: RoomInfo
    /// First pages of the lists; `nil` for a room without them.
    var lists: FirstPages?

    struct FirstPages {
        var participants: Page
        var awaited: Page
        var streams: Page
    }

    private enum CodingKeys: CodingKey { case participants, awaited, streams, next }

    func encode(to encoder: any Encoder) throws {
        try room.encode(to: encoder)
        guard let lists else { return }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(lists.participants.list, forKey: .participants)
        try container.encode(lists.awaited.list, forKey: .awaited)
        try container.encode(lists.streams.list, forKey: .streams)
        var next = RoomPages()
        next.participants = lists.participants.next
        next.awaited = lists.awaited.next
        next.streams = lists.streams.next
        if next != RoomPages() { try container.encode(next, forKey: .next) }
    }
}

/// Encodable form of `ParticipantJoin.Result`.
struct EncodedJoin: Encodable {
    var state: JoinState
    var room: RoomID
    var participant: ParticipantID
    var node: String?
    var participantInfo: ParticipantInfo
    var roomInfo: EncodedJSON
    var roleRequest: RoleRequestInfo?
}

/// Elements of a list, each encoded only when it changes.
struct EncodedList {
    private var texts: [String: [UInt8]] = [:]

    subscript(name: String) -> [UInt8]? {
        get { texts[name] }
        set { texts[name] = newValue }
    }

    /// Appends elements to a page, in their order, until it is full.
    ///
    /// - Returns: whether all fitted.
    @discardableResult
    func fill(
        _ page: inout Page,
        with names: some Sequence<(String, UInt64)>,
        prefix: String = "",
        where isWanted: (String) -> Bool = { _ in true }
    ) -> Bool {
        for (name, birth) in names where isWanted(name) {
            guard let text = texts[name] else { continue }
            guard page.append(text, cursor: "\(prefix)\(birth)") else { return false }
        }
        return true
    }
}
