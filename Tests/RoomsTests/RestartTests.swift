import JSON
import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import ControlPlane
@testable import Rooms

@Suite struct RestartTests {
    private static let rooms = ["r", "other"]
    private static let people = ["a", "b/c", "d", "e"]

    /// Answers to all queries about the rooms.
    private func answers(_ driver: inout RestartDriver) -> [String] {
        var answers = [driver.call("room.list"), driver.call("server.info")]
        for room in Self.rooms {
            answers.append(driver.call("room.get", ["room": .string(room)]))
            answers.append(driver.call("role.requests", ["room": .string(room)]))
            for id in Self.people {
                let params: JSON = ["room": .string(room), "participant": .string(id)]
                for method in ["transport.list", "subscription.list", "message.topics"] {
                    answers.append(driver.call(method, params))
                }
            }
        }
        return answers
    }

    @Test(arguments: 1...12) func nobodyNoticesARestart(seed: UInt64) {
        var driver = RestartDriver(seed: seed)
        var random = SeededRandom(seed: seed)
        for _ in 0..<6 {
            for _ in 0..<40 { Self.step(&driver, &random) }
            driver.pass(milliseconds: 500)
            let before = answers(&driver)
            let missed = Self.rooms.map { replay(&driver, $0) }
            let workers = driver.workers
            let connected = driver.plane.rooms.entries.values.flatMap(\.room.participants.values)
                .flatMap(\.transports).filter { $0.connection == .connected }.map(\.place.id)

            driver.restart()
            #expect(driver.workers == workers)
            #expect(driver.resumed == Set(connected))
            #expect(driver.errors == [])
            #expect(answers(&driver) == before)
            #expect(Self.rooms.map { replay(&driver, $0) } == missed)
        }
    }

    /// Returns the last events of a room that a client has missed; `[]` if they are too old.
    private func replay(_ driver: inout RestartDriver, _ room: String) -> [[UInt8]] {
        let seq = Int64(driver.plane.journals.numbered(room)) - 3
        guard seq >= 0 else { return [] }
        driver.call("events.subscribe", ["since": .object([room: .integer(seq)])])
        return driver.replay.count < 3 ? [] : driver.replay
    }

    static func step(_ driver: inout RestartDriver, _ random: inout SeededRandom) {
        func pick<Element>(_ elements: [Element]) -> Element {
            elements[Int.random(in: elements.indices, using: &random)]
        }
        let room = pick(rooms)
        let id = pick(people)
        let entry = driver.plane.rooms[room]?.room
        let stream = pick((entry?.streamsInOrder.map(\.id) ?? []) + ["none"])
        let subscription = pick((entry?.subscriptions.keys.sorted() ?? []) + [0])
        let both: [String: JSON] = ["room": .string(room), "participant": .string(id)]
        func more(_ other: [String: JSON]) -> JSON { .object(both.merging(other) { $1 }) }
        switch Int.random(in: 0..<16, using: &random) {
        case 0: driver.call("room.create", ["room": .string(room), "custom": ["n": 1]])
        case 1, 2: driver.call("participant.join", more(["custom": ["x": .string(stream)]]))
        case 3, 4, 5:
            let direction = pick(["sendonly", "inactive"])
            let lines = ["0:audio:\(direction)", "1:video:\(direction)", "2:audio:recvonly"]
            driver.call("transport.offer", more(["sdp": .string(SmallOffer(lines).text)]))
        case 6, 7: driver.call("subscription.add", more(["stream": .string(stream)]))
        case 8:
            let params: JSON = [
                "room": .string(room), "subscription": .string("sub-\(subscription)"),
            ]
            driver.call("subscription.remove", params)
        case 9: driver.call("participant.hardMute", more(["media": ["audio"]]))
        case 10: driver.call(pick(["room.lock", "room.unlock"]), ["room": .string(room)])
        case 11: driver.call("message.subscribe", more(["topic": "t/1"]))
        case 12:
            driver.call(
                "message.publish",
                ["room": .string(room), "topic": "t/1", "message": "hello", "persist": true]
            )
        case 13: driver.call("pin.add", ["room": .string(room), "participants": [.string(id)]])
        case 14:
            guard let place = entry?.participants[id]?.transports.first?.place else { return }
            driver.tell(.transport(place.id, .connected), from: place.worker)
        default:
            let isClosing = Int.random(in: 0..<8, using: &random) == 0
            driver.call(
                isClosing ? "room.close" : "participant.leave",
                isClosing ? ["room": .string(room)] : more([:])
            )
        }
    }

    private func meeting() -> RestartDriver {
        var driver = RestartDriver(seed: 1)
        for room in Self.rooms {
            driver.call("room.create", ["room": .string(room)])
            for id in ["a", "d"] {
                driver.call(
                    "participant.join",
                    ["room": .string(room), "participant": .string(id)]
                )
            }
        }
        return driver
    }

    @Test func laterAnswersHaveTheAddressesOfTheirWorkers() {
        var driver = meeting()
        let lines = ["0:audio:sendonly:1", "1:video:sendonly"]
        func offer(_ id: String) -> String {
            driver.call(
                "transport.offer",
                [
                    "room": "r", "participant": .string(id),
                    "sdp": .string(SmallOffer(lines).text),
                ]
            )
        }
        /// Ports of the workers among the candidates.
        func ports(_ answer: String) -> [Int] {
            [1, 2].filter { answer.contains("0.0.0.1 \($0) typ host") }
        }
        let before = ["a", "d"].map { ports(offer($0)) }
        #expect(before.flatMap(\.self).sorted() == [1, 2])
        driver.restart()
        #expect(["a", "d"].map { ports(offer($0)) } == before)
    }

    @Test func aBadRecordCostsItsRoomOnly() {
        for kind in ["r/r/", "p/r/a", "j/r/"] {
            var driver = meeting()
            let shown = driver.call("room.get", ["room": "other"])
            var records = driver.saved
            records[kind] = Array("{".utf8)
            driver.restart(with: records)
            #expect(driver.errors.count == 1, "\(kind)")
            #expect(driver.call("room.get", ["room": "other"]) == shown)
            #expect(driver.plane.rooms["r"] == nil)
            #expect(driver.plane.rooms.count == 1)
        }
    }

    @Test func aBadRecordOfTheProcessCostsAll() {
        var driver = meeting()
        var records = driver.saved
        records["x"] = nil
        driver.restart(with: records)
        #expect(driver.errors.count == 1)
        #expect(driver.plane.rooms.isEmpty)
    }

    @Test func aCallUnderWayIsComplete() {
        var driver = meeting()
        let offer = SmallOffer(["0:audio:sendonly"]).text
        driver.call("transport.offer", ["room": "r", "participant": "a", "sdp": .string(offer)])
        driver.passesFences = false
        driver.call("participant.leave", ["room": "r", "participant": "a"])
        let told = driver.events["r"]?.count ?? 0
        driver.passesFences = true
        driver.restart()
        #expect(driver.plane.rooms["r"]?.room.participants["a"] == nil)
        #expect(driver.workers == [ToldWorker(), ToldWorker()])
        // The events that nobody has been told are those that a client asks for.
        driver.call("events.subscribe", ["since": ["r": .integer(Int64(told))]])
        let replay = driver.replay.map { String(decoding: $0, as: UTF8.self) }
        #expect(replay.contains { $0.contains("participant.left") })
        // Its handles are free, but are not given again.
        let old = driver.plane.shared.identifiers[0].transports.highest
        #expect(driver.plane.shared.identifiers[0].transports.allocate()?.generation == old)
        #expect(old > 1)
    }

    @Test func whatEndsIsForgotten() {
        var driver = meeting()
        for room in Self.rooms { driver.call("room.close", ["room": .string(room)]) }
        let left = driver.saved.keys.filter { !$0.hasPrefix("e/") && !$0.hasPrefix("j/") }
        #expect(left == ["x"])
        #expect(driver.saved.keys.filter { $0.hasPrefix("e/") }.count == 2)
    }

    @Test func aMessageIsARecord() {
        var driver = meeting()
        for number in 0..<50 {
            driver.call(
                "message.publish",
                ["room": "r", "topic": "t", "message": .string("\(number)"), "persist": true]
            )
        }
        let records = driver.saved.filter { $0.key.hasPrefix("m/r/") }
        // Each says what it has to say of one message, however many are kept.
        #expect(records.count == 50 && records.values.allSatisfy { $0.count < 300 })
    }

    @Test func spellingsOfATopicAreTopics() {
        let composed = JSON.string("caf\u{e9}")
        let decomposed = JSON.string("cafe\u{301}")
        var driver = meeting()
        func topics(_ driver: inout RestartDriver) -> String {
            driver.call("message.topics", ["room": "r"])
        }
        for topic in [composed, decomposed] {
            let who: JSON = ["room": "r", "participant": "a", "topic": topic]
            driver.call("message.subscribe", who)
        }
        let both = topics(&driver)
        driver.restart()
        #expect(topics(&driver) == both)
        let who: JSON = ["room": "r", "participant": "a", "topic": composed]
        driver.call("message.unsubscribe", who)
        let one = topics(&driver)
        #expect(one != both)
        driver.restart()
        #expect(topics(&driver) == one)
        #expect(driver.saved.keys.filter { $0.hasPrefix("b/r/") }.count == 1)
    }
}
