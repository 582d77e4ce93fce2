import Foundation
import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import Daemon
@testable import JSON

/// Limits in `server.info`, and the bounds of what calls may name.
@Suite struct ShownLimitTests {
    private func shown(_ limits: ControlLimits = ControlLimits()) throws -> ServerLimits {
        var driver = ControlDriver(limits: limits)
        return try driver.done("server.info").decode(ServerInfo.Result.self).limits
    }

    @Test func `server.info shows each limit with a key, as it is set`() throws {
        var limits = ControlLimits()
        limits.transportsPerParticipant = 7
        limits.subscriptionsPerParticipant = 11
        let shown = try shown(limits)
        #expect(shown["transportsPerParticipant"] == 7)
        #expect(shown["subscriptionsPerParticipant"] == 11)
        for limit in ConfigurationLimit.all { #expect(shown[limit.name] != nil, "\(limit.name)") }
        #expect(shown["handlesPerWorker"] == limits.transportsPerWorker * 8)
    }

    @Test func `server.info shows the limits that the contract fixes`() throws {
        let shown = try shown()
        #expect(shown["sdp"] == SDPLimits.bytes && shown["mLines"] == SDPLimits.mediaLines)
        #expect(shown["mid"] == 48 && shown["id"] == 128 && shown["line"] == 1 << 20)
        #expect(shown["roomsPerFeed"] == 10_000 && shown["pins"] == 100)
        let names = Set(ConfigurationLimit.all.map(\.name))
        for name in ControlSetup.fixedLimits.keys { #expect(!names.contains(name), "\(name)") }
    }

    @Test func `every limit that a refusal names is shown`() throws {
        let shown = try shown()
        let folder = URL(filePath: #filePath).appending(path: "../../../Sources").standardized
        let files = FileManager.default.enumerator(atPath: folder.path)
        var named: Set<String> = []
        for case let name as String in files ?? .init() where name.hasSuffix(".swift") {
            let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            named.formUnion(
                text.matches(of: /limitReached\(\s*"(\w+)"/).map { String($0.1) }
            )
            named.formUnion(text.matches(of: /"limit": .text\("(\w+)"\)/).map { String($0.1) })
        }
        #expect(named.count > 10)
        for name in named { #expect(shown[name] != nil, "\(name)") }
    }

    @Test func `limits.md names every limit that is shown`() throws {
        let page = try DocumentationTests.page("limits.md")
        for name in try shown().values.keys.sorted() {
            #expect(page.contains("| `\(name)` |"), "\(name)")
        }
    }

    @Test(arguments: [(48, true), (49, false)])
    func `a mid has one bound, in offers and in params`(_ length: Int, _ fits: Bool) throws {
        let mid = String(repeating: "m", count: length)
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let offer: JSON = [
            "room": "r", "participant": "a",
            "sdp": .string(TestOffer(["\(mid):audio:recvonly"]).text),
        ]
        let follow: JSON = [
            "room": "r", "participant": "a", "audioMids": [.string(mid)], "videoMids": [],
        ]
        for (call, code) in [
            (driver.call("transport.offer", offer), 4022),
            (driver.call("talkers.subscribe", follow), -32602),
        ] {
            switch call {
            case .success: #expect(fits)
            case .failure(let error): #expect(!fits && error.code == code, "\(error)")
            }
        }
    }

    @Test func `stats.subscribe takes 10,000 rooms and no more`() throws {
        var driver = ControlDriver()
        for (count, fits) in [(10_000, true), (10_001, false)] {
            let rooms = JSON.array((0..<count).map { .string("r\($0)") })
            switch driver.call("stats.subscribe", ["rooms": rooms, "seconds": 60]) {
            case .success: #expect(fits)
            case .failure(let error):
                #expect(!fits && error.code == -32602)
                #expect(error.details["parameter"] == "rooms")
            }
        }
    }

    struct Cursor: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var after: JSON
        var more: [String: JSON] = [:]
    }

    static let cursors = [
        Cursor(testDescription: "room.list", after: "no room"),
        Cursor(testDescription: "participant.list", after: "x1"),
        Cursor(testDescription: "transport.list", after: "a b", more: ["participant": "a"]),
        Cursor(testDescription: "stream.list", after: "s"),
        Cursor(testDescription: "subscription.list", after: "s", more: ["participant": "a"]),
        Cursor(testDescription: "role.requests", after: "r"),
        Cursor(
            testDescription: "message.subscribe",
            after: "m",
            more: ["participant": "a", "topic": "t"]
        ),
        Cursor(testDescription: "stats.get", after: "s"),
        Cursor(testDescription: "recording.list", after: "r"),
        Cursor(testDescription: "streaming.list", after: "s"),
        Cursor(testDescription: "tap.list", after: "t"),
    ]

    @Test(arguments: cursors)
    func `an after that no page gives is refused by its name`(_ cursor: Cursor) throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let isOfRoom = cursor.testDescription != "room.list"
        var params = cursor.more.merging(["after": cursor.after]) { $1 }
        if isOfRoom { params["room"] = "r" }
        guard case .failure(let error) = driver.call(cursor.testDescription, .object(params)) else {
            Issue.record("it was taken")
            return
        }
        #expect(error.code == -32602 && error.details["parameter"] == "after")
    }

    @Test func `L-14 a listing goes on where a room has ended meanwhile`() throws {
        var driver = ControlDriver()
        for room in ["a", "b", "c", "d"] { try driver.room(room) }
        let first = try driver.done("room.list", ["limit": 2]).decode(RoomList.Result.self)
        #expect(first.rooms.map(\.room) == ["a", "b"])
        let next = JSON.string(try #require(first.next).rawValue)
        try driver.done("room.close", ["room": "b"])
        try driver.room("bb")
        let rest = try driver.done("room.list", ["after": next]).decode(RoomList.Result.self)
        #expect(rest.rooms.map(\.room) == ["bb", "c", "d"] && rest.next == nil)
    }
}
