import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

@Suite struct ShownRoomTests {
    @Test(arguments: [0, 1, 3])
    func `it is written as the contract's room is`(count: Int) {
        let people = (0..<count).map { number in
            ParticipantInfo(
                participant: ParticipantID("p\(number)"),
                name: "\"\(number)\"",
                role: "participant",
                mode: .sendAndReceive,
                state: .joined
            )
        }
        let streams = people.map { person in
            StreamInfo(
                stream: StreamID("s-\(person.participant)"),
                participant: person.participant,
                source: .camera,
                created: 1
            )
        }
        var room = RoomInfo(
            room: RoomID("r"),
            state: .ongoing,
            settings: RoomSettings(),
            created: 7
        )
        let lists = EncodedRoom.FirstPages(
            participants: Self.page(of: people),
            awaited: Page(limit: nil),
            streams: Self.page(of: streams)
        )
        let shown = EncodedRoom(room: room, lists: lists)
        room.participants = people
        room.awaited = []
        room.streams = streams
        #expect(JSON(encoding: shown) == JSON(encoding: room))
    }

    private static func page(of elements: [some Encodable]) -> Page {
        var page = Page(limit: nil)
        for (number, element) in elements.enumerated() {
            _ = page.append(JSON.encoded(element), cursor: "\(number)")
        }
        return page
    }
}

@Suite struct PageTests {
    @Test func `a page ends at its limit and says where the list goes on`() throws {
        let numbers: [UInt64] = [2, 3, 5, 7]
        let rows: [(limit: PageLimit?, after: PageCursor?, list: String, next: String?)] = [
            (nil, nil, "[2,3,5,7]", nil), (2, nil, "[2,3]", "3"), (2, "3", "[5,7]", nil),
            (1, "2", "[3]", "3"), (3, "4", "[5,7]", nil), (2, "9", "[]", nil),
        ]
        for row in rows {
            let page = try Page.numbered(
                numbers,
                by: \.self,
                limit: row.limit,
                after: row.after
            ) { JSON.encoded($0) }
            #expect(String(decoding: page.list.bytes, as: UTF8.self) == row.list)
            #expect(page.next == row.next)
        }
        #expect(throws: IPCError.self) {
            try Page.numbered(numbers, by: \.self, limit: nil, after: "x") { JSON.encoded($0) }
        }
    }

    @Test func `a page ends before its bytes, but never stands still`() {
        var page = Page(limit: nil, byteLimit: 10)
        let long = [UInt8](repeating: 0x31, count: 50)
        let isTaken = (page.append(long, cursor: "a"), page.append([0x31], cursor: "b"))
        #expect(isTaken == (true, false))
        #expect(page.count == 1 && page.next == "a")
    }
}
