/// Message about a home's participants at another node.
///
/// The messages of a session come each once and in order, also when the link breaks meanwhile.
package struct PlaceMessage: Hashable, Sendable {
    /// Number of the session, by the home; it grows.
    package var session: UInt64
    /// Whether it comes from the home.
    package var isFromHome: Bool
    /// Position in the session, from 1; 0 for a mere acknowledgement, `ending` for an end.
    package var number: UInt64
    /// Number of the last message of the other side that came.
    package var acknowledged: UInt64
    package var payload: [UInt8]

    /// Number of a message that ends the session, or any that the sender has lost (session 0).
    package static let ending = UInt64.max

    package init(
        session: UInt64,
        isFromHome: Bool,
        number: UInt64,
        acknowledged: UInt64,
        payload: [UInt8]
    ) {
        self.session = session
        self.isFromHome = isFromHome
        self.number = number
        self.acknowledged = acknowledged
        self.payload = payload
    }

    init?(_ reader: inout LinkReader) {
        guard let session = reader.number(), let side = reader.byte(), side <= 1,
            let number = reader.number(), let acknowledged = reader.number(),
            let payload = reader.bytes()
        else { return nil }
        self.init(
            session: session,
            isFromHome: side == 1,
            number: number,
            acknowledged: acknowledged,
            payload: payload
        )
    }

    func write(to writer: inout LinkWriter) {
        writer.number(session)
        writer.byte(isFromHome ? 1 : 0)
        writer.number(number)
        writer.number(acknowledged)
        writer.bytes(payload)
    }
}

/// One side of a session: what was sent and not acknowledged, and how far the other has come.
struct PlaceStream {
    let session: UInt64
    /// Life of the other node.
    let boot: String
    let isHome: Bool
    private var waiting: [PlaceMessage] = []
    private var last: UInt64 = 0
    private var received: UInt64 = 0
    private var acknowledged: UInt64 = 0

    /// Messages that may wait for an acknowledgement; beyond, the session ends.
    static let limit = 100_000

    /// Treatment of a message that came.
    enum Arrival: Equatable {
        case take
        /// It came before, or is a mere acknowledgement.
        case ignore
        /// Some before it are missing: the session cannot go on.
        case broken
    }

    init(session: UInt64, with boot: String, isHome: Bool) {
        self.session = session
        self.boot = boot
        self.isHome = isHome
    }

    /// Whether more waits than a peer that takes part in the session lets wait.
    var isOverfull: Bool { waiting.count > Self.limit }
    /// Whether the other side does not know yet how far its messages have come.
    var owesAcknowledgement: Bool { acknowledged < received }

    /// Makes the next message.
    mutating func next(_ payload: [UInt8]) -> PlaceMessage {
        last += 1
        let message = message(last, payload)
        waiting.append(message)
        return message
    }

    mutating func acknowledgement() -> PlaceMessage { message(0, []) }

    private mutating func message(_ number: UInt64, _ payload: [UInt8]) -> PlaceMessage {
        acknowledged = received
        return PlaceMessage(
            session: session,
            isFromHome: isHome,
            number: number,
            acknowledged: received,
            payload: payload
        )
    }

    /// Messages to send again over a new link.
    var unacknowledged: [PlaceMessage] { waiting }

    mutating func receive(_ message: PlaceMessage) -> Arrival {
        if let first = waiting.first?.number, message.acknowledged >= first {
            waiting.removeFirst(Int(min(message.acknowledged - first + 1, UInt64(waiting.count))))
        }
        guard message.number > received else { return .ignore }
        guard message.number == received + 1 else { return .broken }
        received = message.number
        return .take
    }
}
