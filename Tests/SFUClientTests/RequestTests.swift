import Testing

@testable import Contract

@Suite struct RequestTests {
    /// The answer to a line: code and id.
    struct Answer: Equatable, Sendable {
        var code: Int
        var id: RequestID?
    }

    static let refused: [Row<String, Answer>] = [
        Row("not JSON", "{", Answer(code: -32700)),
        Row("empty line", "", Answer(code: -32700)),
        Row("byte order mark", "\u{feff}{}", Answer(code: -32700)),
        Row("batch", "[]", Answer(code: -32600)),
        Row("a number", "1", Answer(code: -32600)),
        Row("no jsonrpc", #"{"id":5,"method":"m"}"#, Answer(code: -32600, id: .integer(5))),
        Row(
            "another version",
            #"{"jsonrpc":"1.0","id":5,"method":"m"}"#,
            Answer(code: -32600, id: .integer(5))
        ),
        Row(
            "version as number",
            #"{"jsonrpc":2.0,"id":"x","method":"m"}"#,
            Answer(code: -32600, id: .string("x"))
        ),
        Row("notification", #"{"jsonrpc":"2.0","method":"m"}"#, Answer(code: -32600)),
        Row("null id", #"{"jsonrpc":"2.0","id":null,"method":"m"}"#, Answer(code: -32600)),
        Row("fraction as id", #"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, Answer(code: -32600)),
        Row("boolean id", #"{"jsonrpc":"2.0","id":true,"method":"m"}"#, Answer(code: -32600)),
        Row("array as id", #"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, Answer(code: -32600)),
        Row("object as id", #"{"jsonrpc":"2.0","id":{},"method":"m"}"#, Answer(code: -32600)),
        Row(
            "id of 257 bytes",
            #"{"jsonrpc":"2.0","id":""# + String(repeating: "a", count: 257) + #"","method":"m"}"#,
            Answer(code: -32600)
        ),
        Row(
            "no method",
            #"{"jsonrpc":"2.0","id":5}"#,
            Answer(code: -32600, id: .integer(5))
        ),
        Row(
            "method as number",
            #"{"jsonrpc":"2.0","id":5,"method":1}"#,
            Answer(code: -32600, id: .integer(5))
        ),
        Row(
            "params as array",
            #"{"jsonrpc":"2.0","id":5,"method":"m","params":[]}"#,
            Answer(code: -32602, id: .integer(5))
        ),
        Row(
            "params null",
            #"{"jsonrpc":"2.0","id":5,"method":"m","params":null}"#,
            Answer(code: -32602, id: .integer(5))
        ),
    ]

    @Test(arguments: refused)
    func `refuses what is no request`(_ row: Row<String, Answer>) {
        let refusal = #expect(throws: IPCRefusal.self) {
            _ = try IPCRequest(line: row.input.bytes)
        }
        #expect(refusal?.error.code == row.output.code)
        #expect(refusal?.id == row.output.id)
    }

    @Test func `reads a request and writes it back`() throws {
        let line = #"{"jsonrpc":"2.0","id":"a/1","method":"room.get","params":{"room":"r1"}}"#
        let request = try IPCRequest(line: (line + "\r\n").bytes)
        #expect(request.id == .string("a/1"))
        #expect(request.method == RoomGet.name)
        #expect(try request.params(RoomOnly.self).room == "r1")
        #expect(request.encoded().text == line)
    }

    @Test func `params may be left out`() throws {
        let line = #"{"jsonrpc":"2.0","id":-1,"method":"server.info"}"#
        let request = try IPCRequest(line: line.bytes)
        #expect(request.id == .integer(-1))
        _ = try request.params(Empty.self)
    }

    @Test func `writes replies, errors and events in one order`() throws {
        let fence = Fence(time: 1_763_600_000.125, packets: 3)
        let reply = IPCReply.encoded(id: .integer(7), result: Done(fence: fence))
        let fenceText = #"{"time":1763600000.125,"packets":3}"#
        #expect(
            reply.text == #"{"jsonrpc":"2.0","id":7,"result":{"fence":"# + fenceText + "}}"
        )
        #expect(
            IPCReply.encoded(id: .integer(8), result: Done()).text
                == #"{"jsonrpc":"2.0","id":8,"result":{}}"#
        )

        let refusal = IPCReply.encoded(id: nil, error: .badSDP(line: 4, cause: "no mid"))
        #expect(
            refusal.text
                == #"{"jsonrpc":"2.0","id":null,"error":{"code":4022,"#
                + #""message":"bad SDP in line 4: no mid","#
                + #""data":{"cause":"no mid","line":4,"reason":"bad-sdp"}}}"#
        )

        let event = IPCEvent.encoded(
            ParticipantLeft(participant: "p1", reason: "left"),
            room: "r1",
            seq: 17,
            time: 1_763_600_000.5,
            audience: .participants(["m1"])
        )
        #expect(
            event.text
                == #"{"jsonrpc":"2.0","method":"event","params":{"event":"participant.left","#
                + #""room":"r1","seq":17,"time":1763600000.5,"audience":["m1"],"#
                + #""data":{"participant":"p1","reason":"left"}}}"#
        )
    }

    @Test func `a client reads what the server writes`() throws {
        let error = IPCError.limitReached("rooms", 3)
        let line = IPCReply.encoded(id: .string("x"), error: error)
        guard case .reply(let reply) = try IPCMessage(line: line) else {
            Issue.record("no reply")
            return
        }
        #expect(reply.id == .string("x"))
        #expect(reply.outcome == .failure(error))

        let eventLine = IPCEvent.encoded(
            RoomClosed(reason: "shutdown"),
            room: "r",
            seq: 2,
            time: 1.5,
            audience: .all
        )
        guard case .event(let event) = try IPCMessage(line: eventLine) else {
            Issue.record("no event")
            return
        }
        #expect(event.audience == .all)
        #expect(try event.data(as: RoomClosed.self) == RoomClosed(reason: "shutdown"))
        #expect(try event.data(as: ParticipantLeft.self) == nil)
    }
}
