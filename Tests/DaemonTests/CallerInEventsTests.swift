import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Contract 2, rule 2: `by` is in every event that somebody's call caused.
@Suite struct CallerInEventsTests {
    static let rows =
        CallerRow.rooms + CallerRow.participants + CallerRow.roles + CallerRow.media

    /// Makes a room of a moderator `m`, a publisher `a`, and `v`, who watches it if others see it.
    private static func driver(_ settings: [String: JSON] = [:]) throws -> ControlDriver {
        var driver = ControlDriver(recordings: "/recordings")
        try driver.room("r", .object(settings))
        try driver.join("m", ["role": "moderator"])
        guard settings["mode"] != "single_host" else { return driver }
        for id in ["a", "v"] { try driver.join(id) }
        let mids = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        try driver.offer("v", "0:audio:recvonly", "1:video:recvonly")
        if let stream = mids[0].stream { try driver.watch("v", stream) }
        return driver
    }

    /// Returns params with ids in the place of the words that stand for them.
    private static func resolved(_ params: [String: JSON], _ driver: ControlDriver) -> JSON {
        let room = driver.plane.rooms["r"]?.room
        let names: [JSON: String?] = [
            "STREAM": room?.streamsInOrder.first?.id,
            "SUBSCRIPTION": room?.subscriptions.values.first?.id,
            "REQUEST": room?.openRoleRequests(at: driver.now).first?.id,
            "TAP": room?.outputs.first?.name,
        ]
        return .object(params.mapValues { value in (names[value] ?? nil).json ?? value })
    }

    /// Methods that participants call for themselves, without `by`.
    private static let own: Set = [
        "floor.request", "floor.cancel", "floor.finish", "role.accept", "role.decline",
        "participant.leave",
    ]

    @Test(arguments: rows)
    func `a call with by is named in all its events`(_ row: CallerRow) throws {
        var driver = try Self.driver(row.settings)
        try row.before(&driver)
        driver.pass(milliseconds: 1_000)
        driver.events = []
        var params = row.params
        params["room"] = "r"
        if !Self.own.contains(row.method) { params["by"] = .string(row.by) }
        driver.send(row.method, Self.resolved(params, driver))
        driver.fence()
        try row.after(&driver)
        driver.fence()
        #expect(Set(driver.events.map(\.event)).sorted() == row.events)
        for event in driver.events {
            #expect(event.data["by"] == .string(row.by), "\(event.event) \(event.data.text)")
        }
    }

    @Test func `the rows have every method that takes by, and every event that carries it`() {
        let document = ContractDocument(methods: Method.contracts, texts: [:]).json
        let schemas = document["components"]?["schemas"]
        func named(_ list: String, _ schema: String) -> Set<String> {
            let taking = (document[list]?.list ?? []).filter { one in
                let name = one[schema]?["$ref"]?.word?.split(separator: "/").last ?? ""
                return schemas?[String(name)]?["properties"]?["by"] != nil
            }
            return Set(taking.compactMap { $0["name"]?.word })
        }
        // Explaining causes no event.
        let methods = named("methods", "x-params").subtracting(["subscription.explain"])
        #expect(methods.subtracting(Self.rows.map { $0.method }) == [])
        let events = named("x-events", "schema")
        #expect(events.symmetricDifference(Self.rows.flatMap { $0.events }) == [])
    }

    @Test func `events that the media causes name nobody`() throws {
        var driver = try Self.driver()
        let room = try #require(driver.plane.rooms["r"]?.room)
        let slot = try #require(room.participants["v"]?.transports.first?.slots.last).id
        let number = try #require(room.subscriptions.keys.first)
        for id in ["a", "v"] {
            driver.tell(.transport(try driver.transport(id), .connected))
        }
        driver.tell(.started(slot, subscription: number))
        driver.tell(.videoHeld(slot, subscription: number, .quality))
        driver.fence()
        try driver.begin("a")
        driver.tell(.transport(try driver.transport("a"), .disconnected(.timeout)))
        driver.fence()
        let seen: Set = [
            "participant.connection", "subscription.connected", "subscription.videoDisabled",
            "talkers.changed", "stream.destroyed",
        ]
        #expect(seen.isSubset(of: driver.events.map(\.event)))
        #expect(driver.events.allSatisfy { $0.data["by"] == nil })
    }

    /// Callers that changed the list of talkers since its last announcement, and the one named.
    static let changes: [(by: [JSON], named: JSON?)] = [
        (["m"], "m"), (["m", "m"], "m"), (["m", "n"], nil), (["m", .null], nil),
    ]

    @Test(arguments: changes)
    func `a list that waited names its only cause`(_ row: (by: [JSON], named: JSON?)) throws {
        var driver = try Self.driver()
        try driver.join("n", ["role": "moderator"])
        try driver.done("pin.add", ["room": "r", "participants": ["a"]])
        driver.events = []
        for (by, id) in zip(row.by, ["m", "v"] as [JSON]) {
            try driver.done("pin.add", ["room": "r", "participants": [id], "by": by])
        }
        #expect(!driver.events.contains { $0.event == "talkers.changed" })
        driver.pass(milliseconds: 1_000)
        let lists = driver.events.filter { $0.event == "talkers.changed" }
        #expect(!lists.isEmpty && lists.allSatisfy { $0.data["by"] == row.named })
    }
}
