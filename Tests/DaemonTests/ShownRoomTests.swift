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
        let shown = EncodedRoom(
            room: room,
            participants: Self.written(people),
            streams: Self.written(streams)
        )
        room.participants = people
        room.streams = streams
        #expect(JSON.encoded(shown) == JSON.encoded(room))
        let result = ParticipantJoin.Result(state: .joined, room: room)
        let text = EncodedJSON(bytes: JSON.encoded(shown))
        #expect(JSON.encoded(EncodedJoin(state: .joined, room: text)) == JSON.encoded(result))
    }

    private static func written(_ elements: [some Encodable]) -> EncodedJSON {
        var list = EncodedList()
        for (number, element) in elements.enumerated() {
            list["\(number)"] = JSON.encoded(element)
        }
        list["gone"] = nil
        return list.text(inOrder: elements.indices.map { "\($0)" })
    }
}
