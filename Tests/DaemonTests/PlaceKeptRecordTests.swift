import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Records of participants that a node keeps for homes elsewhere: missing, damaged, impossible.
@Suite struct PlaceKeptRecordTests {
    @Test func `a transport that the node had not saved ends`() throws {
        var call = try KeptCall()
        let key = try #require(
            call.world.nodes["b"]?.saved.keys.filter { $0.hasPrefix("g/") }.min()
        )
        call.world.nodes["b"]?.saved[key] = nil
        call.restart()
        call.world.reunite("b")
        #expect(call.told("participant.connection").count == 1)
        #expect(try call.worker("b").transports.count == 1)
        try call.end()
    }

    @Test func `damaged records cost their own participants alone`() throws {
        var call = try KeptCall()
        let keys = call.world.nodes["b"]?.saved.keys.filter { $0.hasPrefix("g/") }.sorted() ?? []
        #expect(keys.count == 2)
        call.world.nodes["b"]?.saved[keys[0]] = Array("nonsense".utf8)
        call.restart()
        #expect(call.world.warnings.count == 1)
        call.world.reunite("b")
        #expect(call.told("participant.connection").count == 1)
        try call.end()
    }

    /// Handles that no record may have.
    enum Damage: CaseIterable { case far, unborn, last, taken }

    @Test(arguments: Damage.allCases)
    func `records with impossible handles are left out`(_ damage: Damage) throws {
        var call = try KeptCall()
        let keys = call.world.nodes["b"]?.saved.keys.filter { $0.hasPrefix("g/") }.sorted() ?? []
        var records: [SavedGuest] = try keys.map {
            try RestoredRecords.decode(call.world.nodes["b"]?.saved[$0])
        }
        switch damage {
        case .far: records[1].transport.our.index = 1 << 30
        case .unborn: records[1].transport.our.generation = 0
        case .last: records[1].slots[0].our.generation = .max
        case .taken: records[1].transport.our = records[0].transport.our
        }
        if records[1].slots.isEmpty, damage == .last { return }
        call.world.nodes["b"]?.saved[keys[1]] = JSON.compact(records[1])
        call.restart()
        #expect(call.world.warnings.count == 1)
        call.world.reunite("b")
        #expect(call.told("participant.connection").count == 1)
        #expect(call.resumed(at: "b").count == 1)
        try call.end()
    }
}
