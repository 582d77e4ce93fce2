/// Returns a participant's transports, in the order of their names.
public enum TransportList: IPCMethod {
    public static let name = "transport.list"

    public struct Params: PagedParams {
        public var room: RoomID
        public var participant: ParticipantID
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            participant: ParticipantID,
            limit: PageLimit? = nil,
            after: PageCursor? = nil
        ) {
            self.room = room
            self.participant = participant
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var transports: [TransportInfo]
        public var next: PageCursor?

        public init(transports: [TransportInfo], next: PageCursor? = nil) {
            self.transports = transports
            self.next = next
        }

        public var page: [TransportInfo] { transports }
    }
}

/// A transport as `transport.list` describes it.
public struct TransportInfo: Codable, Hashable, Sendable {
    public var transport: TransportName
    public var connection: ConnectionState
    /// M-lines that carry media in a direction: those that the participant sends on, then those
    /// that it only receives on.
    public var mids: [LineInfo]

    public init(transport: TransportName, connection: ConnectionState, mids: [LineInfo]) {
        self.transport = transport
        self.connection = connection
        self.mids = mids
    }
}

/// An m-line as negotiated, and what it carries.
public struct LineInfo: Codable, Hashable, Sendable {
    public var mid: Mid
    public var kind: StreamKind
    /// Direction in the answer, from sfud's side: on `recvonly` the participant sends.
    public var direction: MediaDirection
    /// Source of what the participant sends.
    public var source: StreamSource?
    /// Stream that it belongs to; absent while it is held back.
    public var stream: StreamID?
    /// Subscription that the slot carries.
    public var subscription: SubscriptionID?
    /// Whether the slot follows the talkers; absent where the participant receives nothing.
    public var followsTalkers: Bool?
    /// Preferences of a slot that follows.
    public var preferredResolution: Resolution?
    public var preferredFrameRate: FrameRate?

    public init(mid: Mid, kind: StreamKind, direction: MediaDirection) {
        self.mid = mid
        self.kind = kind
        self.direction = direction
    }
}
