import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// Bound of what a connection is sent of the events that it missed, over all rooms.
@Suite struct EventReplayTests {
    /// Makes rooms and changes each so often, every time with an event of over 60,000 bytes.
    private func driver(_ rooms: [(name: String, changes: Int)]) throws -> ControlDriver {
        // The queue of a connection is dropped at 1 MiB then, and a replay has half of that.
        var driver = ControlDriver(outputBytes: 65_536)
        let note = JSON.string(String(repeating: "x", count: 60_000))
        for room in rooms {
            try driver.room(room.name)
            for _ in 0..<room.changes {
                let params: JSON = ["room": .string(room.name), "custom": ["note": note]]
                try driver.done("room.update", params)
            }
        }
        return driver
    }

    /// Subscribes since each room's first event; returns what comes, as `room seq`.
    private func replay(_ driver: inout ControlDriver, _ more: [String: JSON]) throws -> [String] {
        try driver.done("events.subscribe", .object(more))
        return try #require(driver.subscribed.last).replay.map { event in
            let room = event.room?.rawValue ?? ""
            guard event.event == Resync.event else { return "\(room) \(event.seq)" }
            let reason = event.data["reason"] == "expired" ? "expired" : "another reason"
            return "\(room) resync \(event.seq) \(reason)"
        }
    }

    static let rooms = [
        (name: "d", changes: 3), (name: "a", changes: 3), (name: "b", changes: 3),
        (name: "c", changes: 3), (name: "e", changes: 1), (name: "f", changes: 0),
    ]
    static let since: JSON = ["f": 1, "e": 1, "d": 1, "c": 1, "b": 1, "a": 1]

    @Test func `rooms are replayed by name, and those that are too much get resync`() throws {
        var driver = try driver(Self.rooms)
        let expected = [
            "a 2", "a 3", "a 4", "b 2", "b 3", "b 4",
            "c resync 4 expired", "d resync 4 expired", "e 2",
        ]
        for _ in 0..<2 {
            #expect(try replay(&driver, ["since": Self.since]) == expected)
        }
        // Behind what came there is nothing more, so that no client asks for the same for ever.
        let after: JSON = ["f": 1, "e": 2, "d": 4, "c": 4, "b": 4, "a": 4]
        #expect(try replay(&driver, ["since": after]) == [])
    }

    @Test func `the lines of a replay are within the bound`() throws {
        let driver = try driver(Self.rooms)
        var plane = driver.plane
        let request = IPCRequest(
            id: .integer(1_000),
            method: EventsSubscribe.name,
            params: ["since": Self.since]
        )
        plane.receive(
            request.encoded(),
            from: driver.connection,
            at: driver.now,
            unixTime: ControlDriver.startTime
        )
        var bytes: [Int] = []
        for output in plane.takeOutput() {
            guard case .subscribe(_, _, let replay) = output else { continue }
            bytes.append(replay.reduce(0) { $0 + $1.event.line.count })
        }
        #expect(bytes.count == 1 && (bytes.first ?? 0) > 400_000)
        #expect((bytes.first ?? .max) <= 8 * 65_536)
    }

    @Test func `only what is asked for counts`() throws {
        var driver = try driver(Self.rooms)
        let few: [String: JSON] = ["since": Self.since, "events": ["participant.*"]]
        #expect(try replay(&driver, few) == [])
    }

    @Test func `rooms that are gone are told whatever came before`() throws {
        var driver = try driver(Self.rooms)
        let since: JSON = ["a": 1, "b": 1, "c": 1, "z": 1]
        let replay = try replay(&driver, ["since": since])
        #expect(replay.suffix(2) == ["c resync 4 expired", "z resync 0 another reason"])
    }

    @Test func `the bound is 8 MiB, or half of what a connection's queue holds`() {
        let rows: [(outputBytes: Int?, expected: Int)] = [
            (nil, 8 << 20), (65_536, 512 << 10), (1 << 30, 8 << 20),
        ]
        for row in rows {
            let setup = ControlDriver(outputBytes: row.outputBytes).plane.setup
            #expect(setup.replayBytes == row.expected)
        }
    }
}
