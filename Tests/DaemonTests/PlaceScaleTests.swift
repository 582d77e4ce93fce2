import Foundation
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// One room of many people over twenty nodes.
///
/// `SFUD_SCALE=100000` tries it with so many people instead of 1,500; `SFUD_FIGURES=1` prints the
/// time that a join takes as the room grows, which no test can judge on a busy machine.
@Suite struct PlaceScaleTests {
    private static let names = (0..<20).map { "n\($0)" }
    /// Nodes with viewers of the one publisher.
    private static let watching = Set(names[1...5])
    private static let isTold = ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil
    private static let people =
        ProcessInfo.processInfo.environment["SFUD_SCALE"].flatMap(Int.init) ?? 1_500
    /// Sizes at which a mute is tried.
    private static let sizes = [people / 100, people / 10, people]

    /// Lets people join by way of all nodes until there are so many.
    private static func fill(_ world: inout PlaceWorld, from first: Int, to last: Int) throws {
        for number in first..<last {
            let params: JSON = [
                "room": "r", "participant": .string("p\(number)"), "snapshot": false,
            ]
            let node = number % names.count
            let by = node == 0 ? nil : names[node]
            _ = try world.done("participant.join", params, to: names[0], by: by)
            world.replies = [:]
            world.events = []
        }
    }

    @Test func `a mute is told to the nodes with viewers alone, however many people there are`()
        throws
    {
        var limits = ControlLimits()
        limits.participantsPerRoom = Self.people + 10
        var world = PlaceWorld(Self.names, limits: limits)
        _ = try world.done("room.create", ["room": "r"], to: Self.names[0])
        let stream = try world.join("publisher", by: nil, at: Self.names[0], "0:video:sendonly")
            .stream
        for name in Self.watching.sorted() {
            try world.join("at-\(name)", by: name, at: Self.names[0], "0:video:recvonly")
            try world.watch("at-\(name)", stream, at: Self.names[0])
        }
        var size = 0
        var costs: [(messages: Int, bytes: Int)] = []
        for next in Self.sizes {
            let begin = ContinuousClock.now
            try Self.fill(&world, from: size, to: next)
            let taken = begin.duration(to: .now) / .microseconds(1) / Double(max(next - size, 1))
            if Self.isTold { print("FIGURE joins \(size)..<\(next): \(Int(taken)) µs each") }
            size = next
            world.told = [:]
            for method in ["participant.hardMute", "participant.hardUnmute"] {
                _ = try world.done(
                    method,
                    ["room": "r", "participant": "publisher", "media": ["video"]],
                    to: Self.names[0]
                )
            }
            #expect(Set(world.told.keys) == Self.watching)
            costs.append(
                world.told.values.reduce((0, 0)) { ($0.0 + $1.messages, $0.1 + $1.bytes) }
            )
        }
        #expect(costs.allSatisfy { $0.messages == costs[0].messages }, "\(costs)")
        #expect(costs.allSatisfy { $0.bytes < 2 * costs[0].bytes }, "\(costs)")
        if Self.isTold { print("FIGURE a mute and its end: \(costs.map(\.messages)) messages") }
    }
}
