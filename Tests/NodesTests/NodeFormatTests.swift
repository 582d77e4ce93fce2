import JSON
import TestSupport
import Testing

@testable import Nodes

/// Keys of the registry and messages of links.
@Suite struct NodeFormatTests {
    static let rooms: [(room: String, token: String)] = [
        ("r1", "r1"), ("a.b", "a=2Eb"), ("a:b", "a=3Ab"), (".", "=2E"), ("..", "=2E=2E"),
        ("Room_1-x", "Room_1-x"), ("a=b".replacing("=", with: "."), "a=2Eb"),
    ]

    @Test(arguments: rooms)
    func `a room's id is a token and comes back`(room: String, token: String) {
        #expect(RoomKey.token(of: room) == token)
        #expect(RoomKey.room(of: token) == room)
    }

    @Test(arguments: [
        "", "a.b", "a=2", "a=2F", "ä", "a b", "=", String(repeating: "a", count: 129),
    ])
    func `other tokens are no rooms`(_ token: String) {
        #expect(RoomKey.room(of: token) == nil)
    }

    @Test(arguments: [
        ("a", true), ("fra-1_x", true), ("", false), ("a.b", false), ("a b", false), ("ü", false),
        (String(repeating: "n", count: 64), true), (String(repeating: "n", count: 65), false),
    ])
    func `a node's name is a token`(text: String, isName: Bool) {
        #expect((NodeName(rawValue: text) != nil) == isName)
    }

    static let messages: [LinkMessage] = [
        .call(number: 1, answered: 2, first: 3, connection: .max, line: Array("{}".utf8)),
        .reply(number: 3, line: []),
        .notHere(number: 4),
        .forgotten(number: 5),
        .event(connections: [1, 2, 3], room: "r", seq: 9, name: "room.created", line: [1, 2]),
        .event(connections: [], room: "", seq: 0, name: "stats", line: []),
        .positions(["r": 1, "s": .max]),
        .closed(connection: 6),
        .ping(7),
        .pong(8),
    ]

    @Test(arguments: messages)
    func `a message comes back from its frame`(_ message: LinkMessage) throws {
        var deframer = LinkDeframer()
        let frame = message.encoded()
        // Byte by byte, and then all at once.
        var received: [LinkMessage] = []
        for byte in frame { received += try deframer.receive([byte]) }
        received += try deframer.receive(frame + frame)
        #expect(received == [message, message, message])
    }

    @Test(arguments: messages)
    func `a frame that was cut or prolonged is malformed`(_ message: LinkMessage) {
        let frame = Array(message.encoded().dropFirst(4))
        for length in 0..<frame.count { #expect(LinkMessage(frame: frame[..<length]) == nil) }
        #expect(LinkMessage(frame: frame[...] + [0]) == nil)
        var other = frame
        other[0] = 2
        #expect(LinkMessage(frame: other[...]) == nil)
    }

    @Test func `a frame has a greatest length`() throws {
        var deframer = LinkDeframer()
        #expect(try deframer.receive([0x00, 0x40, 0x00, 0x00]).isEmpty)
        var other = LinkDeframer()
        #expect(throws: LinkDeframer.Failure.tooLong) {
            try other.receive([0x00, 0x40, 0x00, 0x01])
        }
    }

    static let members: [(load: String, rooms: Int, isValid: Bool)] = [
        ("0", 0, true), ("1", 7, true), ("1.001", 0, false), ("-0.1", 0, false),
        ("1e300", 0, false), ("0", -1, false),
    ]

    @Test(arguments: members)
    func `a node's figures have ranges`(load: String, rooms: Int, isValid: Bool) throws {
        let text = """
            {"boot":"x","protocols":[1],"link":"127.0.0.1:1","fingerprint":"f","state":"up",\
            "load":\(load),"rooms":\(rooms),"participants":0,"beat":1}
            """
        let record = try #require(JSON.record(MemberRecord.self, of: Array(text.utf8)))
        #expect(record.isValid == isValid)
    }

    @Test(arguments: [(0, true), ((1 << 53) - 1, true), (1 << 53, false), (.max, false)])
    func `a term leaves room for the next one`(term: UInt64, isValid: Bool) {
        let record = RoomRecord(home: NodeWorld.name("a"), boot: "x", term: term)
        #expect(record.isValid == isValid)
    }

    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `random bytes never trap`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var deframer = LinkDeframer()
        for _ in 0..<20 {
            var bytes = random.bytes(Int(random.pick(0...60)))
            if random.chance(0.5) {
                bytes = [0, 0, 0, UInt8(bytes.count + 2), 1, UInt8(random.pick(0...10))] + bytes
            }
            _ = try? deframer.receive(bytes)
        }
    }
}
