public import JSON

/// The reply to a call.
public struct IPCReply: Hashable, Sendable {
    /// `nil` if the request had no readable id.
    public var id: RequestID?
    public var outcome: Result<JSON, IPCError>

    /// Returns the line of a successful reply, without its newline.
    ///
    /// Lists have pages, so a result longer than a line is not to be. Should there be one, the
    /// caller keeps its connection and gets `4029 limit-reached` with the limit `line`.
    public static func encoded(id: RequestID, result: some Encodable) -> [UInt8] {
        let writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.id(id)
        writer.raw(",\"result\":")
        writer.value(result)
        writer.raw("}")
        guard writer.bytes.count <= IPCRequest.lineLimit else {
            return encoded(id: id, error: .limitReached("line", IPCRequest.lineLimit))
        }
        return writer.bytes
    }

    /// Returns the line of an error reply, without its newline.
    public static func encoded(id: RequestID?, error: IPCError) -> [UInt8] {
        let writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.id(id)
        writer.raw(",\"error\":")
        writer.value(error)
        writer.raw("}")
        return writer.bytes
    }
}

/// One event as received in a line.
public struct IPCEvent: Hashable, Sendable {
    public var event: String
    /// `nil` for an event of the server.
    public var room: RoomID?
    /// Number of the event in its room, from 1 without gaps; 0 for an event of no room.
    public var seq: Int64
    /// Unix time, in seconds.
    public var time: Double
    /// The participants whom it concerns.
    public var audience: Audience
    public var data: JSON

    package init(
        event: String,
        room: RoomID? = nil,
        seq: Int64,
        time: Double,
        audience: Audience,
        data: JSON
    ) {
        self.event = event
        self.room = room
        self.seq = seq
        self.time = time
        self.audience = audience
        self.data = data
    }

    /// Returns the data as `type`, or `nil` if this is another event.
    ///
    /// - Throws: `IPCError` if the data does not match the type.
    public func data<D: EventData>(as type: D.Type) throws(IPCError) -> D? {
        event == D.event ? try data.decode(type) : nil
    }

    /// Returns the line of a room's event, without its newline.
    public static func encoded<D: EventData>(
        _ data: D,
        room: RoomID,
        seq: Int64,
        time: Double,
        audience: Audience
    ) -> [UInt8] {
        let writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":")
        writer.string(D.event)
        writer.raw(",\"room\":")
        writer.string(room.rawValue)
        writer.raw(",\"seq\":\(seq),\"time\":")
        writer.number(time)
        writer.raw(",\"audience\":")
        writer.value(audience)
        writer.raw(",\"data\":")
        writer.value(data)
        writer.raw("}}")
        return writer.bytes
    }

    /// Returns the line of a server event, without its newline.
    public static func encoded<D: EventData>(_ data: D, time: Double) -> [UInt8] {
        let writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":")
        writer.string(D.event)
        writer.raw(",\"time\":")
        writer.number(time)
        writer.raw(",\"audience\":")
        writer.value(Audience.all)
        writer.raw(",\"data\":")
        writer.value(data)
        writer.raw("}}")
        return writer.bytes
    }
}

extension IPCEvent: Codable {
    private enum CodingKeys: CodingKey { case event, room, seq, time, audience, data }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        event = try container.decode(String.self, forKey: .event)
        room = try container.decodeIfPresent(RoomID.self, forKey: .room)
        seq = room == nil ? 0 : try container.decode(Int64.self, forKey: .seq)
        time = try container.decode(Double.self, forKey: .time)
        audience = try container.decode(Audience.self, forKey: .audience)
        data = try container.decode(JSON.self, forKey: .data)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(event, forKey: .event)
        if let room {
            try container.encode(room, forKey: .room)
            try container.encode(seq, forKey: .seq)
        }
        try container.encode(time, forKey: .time)
        try container.encode(audience, forKey: .audience)
        try container.encode(data, forKey: .data)
    }
}

/// A line that a client receives: a reply or an event.
public enum IPCMessage: Hashable, Sendable {
    case reply(IPCReply)
    case event(IPCEvent)

    /// Parses a line.
    ///
    /// - Throws: `IPCError` if the line is neither a reply nor an event.
    public init(line: [UInt8]) throws(IPCError) {
        let json: JSON
        do throws(JSONSyntaxError) {
            json = try JSON(parsing: line)
        } catch {
            throw .parseError(error)
        }
        if json["method"] == "event", let params = json["params"] {
            self = .event(try params.decode(IPCEvent.self))
            return
        }
        let id = json["id"].flatMap(RequestID.init)
        if let result = json["result"] {
            self = .reply(IPCReply(id: id, outcome: .success(result)))
        } else if let error = json["error"] {
            self = .reply(IPCReply(id: id, outcome: .failure(try error.decode(IPCError.self))))
        } else {
            throw .invalidRequest("neither reply nor event")
        }
    }
}

extension JSONWriter {
    func id(_ id: RequestID?) {
        switch id {
        case .integer(let integer): raw("\(integer)")
        case .string(let text): string(text)
        case nil: raw("null")
        }
    }
}
