import Contract
import JSON

// The contract's results that hold a room, with the long lists in it written before.

/// `SFUClient::Room`.
struct ShownRoom: Encodable {
    /// All but the lists.
    var room: RoomInfo
    var participants: EncodedJSON
    var streams: EncodedJSON

    private enum CodingKeys: CodingKey { case participants, streams }

    func encode(to encoder: any Encoder) throws {
        try room.encode(to: encoder)
        // They take the places of the empty ones.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(participants, forKey: .participants)
        try container.encode(streams, forKey: .streams)
    }
}

/// `RoomList.Result`.
struct ShownRooms: Encodable { var rooms: [EncodedJSON] }

/// `ParticipantJoin.Result`.
struct ShownJoin: Encodable {
    var state: Admission
    var room: EncodedJSON
}

/// The elements of a JSON array, each written when it changed last.
struct WrittenList {
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
