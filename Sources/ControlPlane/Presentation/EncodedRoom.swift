import Contract
import JSON

// The contract's results that contain a room, with its long lists already encoded.

/// Encodable form of `RoomInfo`.
struct EncodedRoom: Encodable {
    /// The room without participants and streams.
    var room: RoomInfo
    var participants: EncodedJSON
    var streams: EncodedJSON

    private enum CodingKeys: CodingKey { case participants, streams }

    func encode(to encoder: any Encoder) throws {
        try room.encode(to: encoder)
        // These replace the empty lists of `room`.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(participants, forKey: .participants)
        try container.encode(streams, forKey: .streams)
    }
}

/// Encodable form of `RoomList.Result`.
struct EncodedRooms: Encodable { var rooms: [EncodedJSON] }

/// Encodable form of `ParticipantJoin.Result`.
struct EncodedJoin: Encodable {
    var state: JoinState
    var room: EncodedJSON
}

/// JSON array whose elements are encoded only when they change.
struct EncodedList {
    private var texts: [String: [UInt8]] = [:]

    subscript(name: String) -> [UInt8]? {
        get { texts[name] }
        set { texts[name] = newValue }
    }

    func text(inOrder names: [String]) -> EncodedJSON {
        let size = texts.values.reduce(2) { $0 + $1.count + 1 }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        for name in names {
            guard let text = texts[name] else { continue }
            bytes.append(UInt8(ascii: bytes.isEmpty ? "[" : ","))
            bytes += text
        }
        if bytes.isEmpty { bytes.append(UInt8(ascii: "[")) }
        bytes.append(UInt8(ascii: "]"))
        return EncodedJSON(bytes: bytes)
    }
}
