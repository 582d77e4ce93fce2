import Testing

@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Messages between the new home of a room and the nodes where its participants are.
@Suite struct AdoptionMessageTests {
    @Test func `a long answer comes in parts`() throws {
        let transport = Room.TransportLocation(worker: 3, id: TransportID(index: 1, generation: 1))
        let kept = AdoptionAnswer.Kept(
            transport: transport,
            worker: 0,
            negotiation: [UInt8](repeating: 7, count: 100_000)
        )
        let parts = AdoptionAnswer(
            room: "r",
            kept: Array(repeating: kept, count: 100),
            mirrors: []
        )
        .parts
        let read = try parts.map { try #require(JSON.sent(AdoptionAnswer.self, $0)) }
        #expect(parts.count > 2 && parts.allSatisfy { $0.count <= PlaceEvents.byteLimit })
        #expect(read.reduce(0) { $0 + $1.kept.count } == 100)
        #expect(read.map(\.isLast) == Array(repeating: false, count: parts.count - 1) + [true])
    }

    @Test func `commands of a big room come in parts, in order`() throws {
        let commands = (0..<60).map { number in
            RemoteCommand.keep(
                TransportID(index: UInt32(number), generation: 1),
                room: "r",
                [UInt8](repeating: 7, count: 100_000)
            )
        }
        let parts = PlaceCommands(worker: 2, place: 7, commands: commands).parts
        let read = try parts.map { try #require(JSON.sent(PlaceCommands.self, $0)) }
        #expect(parts.count > 1 && parts.allSatisfy { $0.count <= PlaceEvents.byteLimit })
        #expect(read.flatMap(\.commands) == commands)
        #expect(read.allSatisfy { $0.worker == 2 && $0.place == 7 })
    }
}
