public import JSON

/// What comes back for a call.
public struct IPCReply: Hashable, Sendable {
    /// `nil` where the line that is answered had no id that could be read.
    public var id: RequestID?
    public var outcome: Result<JSON, IPCError>

    /// One line without its newline: the call has been done.
    public static func encoded(id: RequestID, result: some Encodable) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.id(id)
        writer.raw(",\"result\":")
        writer.value(result)
        writer.raw("}")
        return writer.bytes
    }

    /// One line without its newline: the call is refused.
    public static func encoded(id: RequestID?, error: IPCError) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.id(id)
        writer.raw(",\"error\":")
        writer.value(error)
        writer.raw("}")
        return writer.bytes
    }
}

/// One event, as a line brings it.
public struct IPCEvent: Hashable, Sendable {
    public var event: String
    /// `nil`: it is the server's own.
    public var room: RoomID?
    /// Counts per room from 1, without gaps; 0 where it is of none.
    public var seq: Int64
    /// Unix time, in seconds.
    public var time: Double
    public var to: Audience
    public var data: JSON

    package init(
        event: String,
        room: RoomID? = nil,
        seq: Int64,
        time: Double,
        to: Audience,
        data: JSON
    ) {
        self.event = event
        self.room = room
        self.seq = seq
        self.time = time
        self.to = to
        self.data = data
    }

    /// The data as `type`, or `nil` where this is another event.
    ///
    /// - Throws: `IPCError` where the data does not fit the type.
    public func data<D: EventData>(as type: D.Type) throws(IPCError) -> D? {
        event == D.event ? try data.decode(type) : nil
    }

    /// One line without its newline.
    public static func encoded<D: EventData>(
        _ data: D,
        room: RoomID,
        seq: Int64,
        time: Double,
        to: Audience
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":")
        writer.string(D.event)
        writer.raw(",\"room\":")
        writer.string(room.rawValue)
        writer.raw(",\"seq\":\(seq),\"time\":")
        writer.number(time)
        writer.raw(",\"to\":")
        writer.value(to)
        writer.raw(",\"data\":")
        writer.value(data)
        writer.raw("}}")
        return writer.bytes
    }

    /// One line without its newline, of the server's own.
    public static func encoded<D: EventData>(_ data: D, time: Double) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"event\":")
        writer.string(D.event)
        writer.raw(",\"time\":")
        writer.number(time)
        writer.raw(",\"to\":")
        writer.value(Audience.all)
        writer.raw(",\"data\":")
        writer.value(data)
        writer.raw("}}")
        return writer.bytes
    }
}

extension IPCEvent: Codable {
    private enum CodingKeys: CodingKey { case event, room, seq, time, to, data }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        event = try container.decode(String.self, forKey: .event)
        room = try container.decodeIfPresent(RoomID.self, forKey: .room)
        seq = room == nil ? 0 : try container.decode(Int64.self, forKey: .seq)
        time = try container.decode(Double.self, forKey: .time)
        to = try container.decode(Audience.self, forKey: .to)
        data = try container.decode(JSON.self, forKey: .data)
    }
}

/// What a client reads from a line.
public enum IPCMessage: Hashable, Sendable {
    case reply(IPCReply)
    case event(IPCEvent)

    /// - Throws: `IPCError` where the line is neither.
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
    mutating func id(_ id: RequestID?) {
        switch id {
        case .integer(let integer): raw("\(integer)")
        case .string(let text): string(text)
        case nil: raw("null")
        }
    }
}
