import RTP
import Rooms
import Testing
import WorkerInterface

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// The list of active talkers, as stories; names begin with the rows that they prove.
@Suite struct TalkersStoryTests {
    /// Makes a moderator `m` and participants who send audio; all of them listen.
    private func driver(
        _ ids: String...,
        settings: JSON = [:]
    ) throws -> ControlDriver {
        var driver = ControlDriver()
        try driver.room("r", settings)
        try driver.join("m", ["role": "moderator"])
        for id in ids {
            try driver.join(id)
            try driver.offer(id, "0:audio:sendonly", "1:video:sendonly")
        }
        _ = driver.takeEvents()
        return driver
    }

    @Test func `E-33 talkers come newest first, then the pinned who are silent`() throws {
        var driver = try driver("a", "b", "c", "d", settings: ["maxActiveTalkers": 3])
        try driver.begin("a")
        #expect(try driver.takeLists() == ["m": "a*", "b": "a*", "c": "a*", "d": "a*"])
        try driver.begin("b", "c", "d")
        driver.pass(milliseconds: 400)
        #expect(try driver.list() == "d* c* b*")
        // Self is removed before the list is cut, so everybody has three.
        let lists = try driver.takeLists()
        #expect(lists["m"] == "d* c* b*" && lists["a"] == "d* c* b*")
        #expect(lists["d"] == "c* b* a*" && lists["b"] == "d* c* a*")
        try driver.done("pin.add", ["room": "r", "participants": ["a", "m"]])
        #expect(try driver.list() == "d* a*! m!")
        try driver.end("a", "d")
        // Present talkers precede silent ones, where places are few.
        #expect(try driver.list() == "c* a! m!")
        try driver.end("c")
        try driver.begin("c")
        #expect(try driver.list() == "c* a! m!")
        try driver.done("pin.remove", ["room": "r", "participants": ["a", "m"]])
        #expect(try driver.list() == "c* d b*")
        #expect(try driver.shown().talkers.map(\.participant) == ["c", "d", "b"])
        #expect(try driver.shown().talkers.allSatisfy { $0.stream != nil && !$0.pinned })
    }

    @Test func `E-33 each distinct list is one event, to those whose it is`() throws {
        var driver = try driver("a", "b", "c")
        try driver.begin("a", "b")
        driver.pass(milliseconds: 1_000)
        _ = driver.takeEventSummaries()
        try driver.begin("c")
        let told = driver.takeEventSummaries()
        #expect(
            Set(told) == [
                "talkers.changed all but a,b,c", "talkers.changed a", "talkers.changed b",
            ]
        )
        // Nothing new for `c`: its own start of speech changes the lists of others.
        driver.pass(milliseconds: 2_000)
        #expect(driver.takeEventSummaries().isEmpty)
    }

    @Test func `E-34 a shared screen's sound makes nobody a talker`() throws {
        var driver = try driver("a")
        try driver.offer(
            "a",
            "0:audio:sendonly",
            "1:video:sendonly",
            "2:video:sendonly",
            "3:audio:sendonly",
            sources: ["2": "screen", "3": "screen"]
        )
        let (worker, id) = try driver.publication("a", source: .screen)
        driver.tell(.speech(id, .began(at: driver.now)), from: worker)
        #expect(try driver.list() == "")
        try driver.begin("a")
        #expect(try driver.list() == "a*")
    }

    @Test func `E-35 a pinned person who begins or ends to talk moves and nothing else`() throws {
        var driver = try driver("a", "b", "c")
        try driver.join("v")
        try driver.offer("v", "0:audio:recvonly", "1:audio:recvonly", "2:video:recvonly")
        try driver.done("pin.add", ["room": "r", "participants": ["a"]])
        try driver.follow("v", audio: ["0", "1"], video: ["2"])
        try driver.begin("b")
        #expect(try driver.seats("v") == ["0": "a", "1": "b", "2": "a"])
        _ = driver.takeCommands()
        driver.pass(milliseconds: 1_000)
        _ = driver.takeEventSummaries()
        for _ in 0..<3 {
            try driver.begin("a")
            #expect(try driver.list() == "a*! b*")
            try driver.end("a")
            #expect(try driver.list() == "b* a!")
        }
        #expect(driver.takeCommands().isEmpty)
        driver.pass(milliseconds: 1_000)
        #expect(driver.commands.isEmpty && driver.fences.isEmpty)
    }

    @Test func `E-35 a noisy room is told of three lists a second, and forwarded at once`() throws {
        var driver = try driver("a", "b", settings: ["maxActiveTalkers": 1])
        try driver.join("v")
        try driver.offer("v", "0:audio:recvonly")
        try driver.follow("v", audio: ["0"])
        _ = driver.takeCommands()
        _ = driver.takeEventSummaries()
        for _ in 0..<50 {
            try driver.begin("a")
            driver.pass(milliseconds: 10)
            try driver.end("a")
            try driver.begin("b")
            driver.pass(milliseconds: 10)
            try driver.end("b")
        }
        #expect(driver.takeBindings().count == 100)
        let told = driver.events.filter { event in
            event.event == "talkers.changed" && event.audience.includes("v")
        }
        #expect((3...4).contains(told.count), "\(told.count) in a second")
        driver.pass(milliseconds: 400)
        // The last one reported is the last there was.
        #expect(try driver.takeLists()["v"] == "b")
    }

    @Test func `E-36 who comes later is shown the list and the pins`() throws {
        var driver = try driver("a", "b")
        try driver.done("pin.add", ["room": "r", "participants": ["b"]])
        try driver.begin("a")
        let joined = try driver.done("participant.join", ["room": "r", "participant": "z"])
            .decode(ParticipantJoin.Result.self)
        #expect(joined.roomInfo.talkers.map(\.participant) == ["a", "b"])
        #expect(joined.roomInfo.talkers.map(\.talking) == [true, false])
        #expect(joined.roomInfo.talkers.map(\.pinned) == [false, true])
        #expect(joined.roomInfo.pins == ["b"])
    }

    struct Loss: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var method: String
        var params: JSON
        /// The call that restores it.
        var back: (method: String, params: JSON)?
    }

    static let losses: [Loss] = [
        Loss(
            testDescription: "room's hard mute",
            method: "room.hardMute",
            params: ["room": "r"],
            back: ("room.hardUnmute", ["room": "r"])
        ),
        Loss(
            testDescription: "hard mute",
            method: "participant.hardMute",
            params: ["room": "r", "participant": "a", "media": ["audio"]],
            back: (
                "participant.hardUnmute", ["room": "r", "participant": "a", "media": ["audio"]]
            )
        ),
        Loss(
            testDescription: "role",
            method: "role.change",
            params: ["room": "r", "participant": "a", "role": "viewer", "force": true]
        ),
        Loss(
            testDescription: "mode",
            method: "participant.setMode",
            params: ["room": "r", "participant": "a", "mode": "RECV_ONLY"]
        ),
        Loss(
            testDescription: "transport",
            method: "transport.close",
            params: ["room": "r", "participant": "a"]
        ),
        Loss(
            testDescription: "leaving",
            method: "participant.leave",
            params: ["room": "r", "participant": "a"]
        ),
    ]

    @Test(arguments: losses)
    func `A0-6 who may not be heard is off the list with the reply`(_ loss: Loss) throws {
        var driver = try driver("a", "b")
        try driver.begin("a")
        let (_, id) = try driver.publication("a")
        #expect(try driver.list() == "a*")
        try driver.done(loss.method, loss.params)
        #expect(try driver.list() == "")
        // Speech that the worker detected before it closed the gate, and the closing.
        driver.tell(.speech(id, .began(at: driver.now)))
        driver.tell(.speech(id, .ended))
        #expect(try driver.list() == "")
        guard let back = loss.back else { return }
        try driver.done(back.method, back.params)
        #expect(try driver.list() == "")
        try driver.begin("a")
        #expect(try driver.list() == "a*")
    }

    @Test func `V-4 who is silenced by the room's mute is announced to talk no more`() throws {
        var driver = try driver("a", "b")
        try driver.offer("m", "0:audio:sendonly")
        try driver.begin("a", "b", "m")
        driver.pass(milliseconds: 1_000)
        #expect(try driver.takeLists()["a"] == "m* b*")
        try driver.done("pin.add", ["room": "r", "participants": ["b"]])
        try driver.done("room.hardMute", ["room": "r", "by": "m"])
        driver.pass(milliseconds: 1_000)
        #expect(try driver.takeLists() == ["m": "b!", "a": "m* b!", "b": "m*"])
        // The caller is heard, and nothing that the others say now.
        let (_, id) = try driver.publication("a")
        driver.tell(.speech(id, .began(at: driver.now)))
        try driver.end("m")
        try driver.begin("m")
        driver.pass(milliseconds: 1_000)
        #expect(try driver.list() == "m* b!")
        try driver.done("room.hardUnmute", ["room": "r", "by": "m"])
        try driver.begin("a")
        driver.pass(milliseconds: 1_000)
        #expect(try driver.takeLists()["b"] == "a* m*")
    }

    @Test func `A0-6 nobody talks who waits for the floor, the door or a host's place`() throws {
        var lecture = try driver("a", settings: ["mode": "lecture"])
        try lecture.done("floor.request", ["room": "r", "participant": "a"])
        try lecture.done("floor.grant", ["room": "r", "participant": "a"])
        try lecture.begin("a")
        lecture.pass(milliseconds: 1_000)
        #expect(try lecture.takeLists() == ["m": "a*"])
        try lecture.done("floor.release", ["room": "r", "participant": "a"])
        lecture.pass(milliseconds: 1_000)
        #expect(try lecture.takeLists() == ["m": ""])
        try lecture.begin("a")
        #expect(try lecture.list() == "")

        var hall = try driver("a", settings: ["knock": true])
        try hall.begin("a")
        #expect(try hall.list() == "", "still at the door")
        try hall.done("participant.approve", ["room": "r", "participant": "a"])
        try hall.begin("a")
        #expect(try hall.list() == "a*")

        var event = try driver(settings: ["mode": "single_host"])
        try event.join("n", ["role": "moderator"])
        for id in ["m", "n"] { try event.offer(id, "0:audio:sendonly") }
        try event.begin("m", "n")
        #expect(try event.list() == "m*")
        try event.done("participant.leave", ["room": "r", "participant": "m"])
        try event.begin("n")
        #expect(try event.list() == "n*")
    }

    @Test func `A0-6 who switches the microphone off is off the list, and a pin stays`() throws {
        var driver = try driver("a")
        try driver.begin("a")
        let stream = try #require(driver.plane.rooms["r"]?.room.streamsInOrder.first).id
        try driver.done(
            "stream.update",
            ["room": "r", "stream": .string(stream), "audio": false]
        )
        #expect(try driver.list() == "")
        try driver.done("pin.add", ["room": "r", "participants": ["a"]])
        #expect(try driver.list() == "a!")
        try driver.done("stream.update", ["room": "r", "stream": .string(stream), "audio": true])
        try driver.begin("a")
        #expect(try driver.list() == "a*!")
        try driver.done("room.hardMute", ["room": "r"])
        #expect(try driver.list() == "a!")
    }

    @Test func `V-9 V-10 pinning many times is one change of the list`() throws {
        var driver = try driver("a")
        for _ in 0..<5 { driver.send("pin.add", ["room": "r", "participants": ["a"]]) }
        driver.fence()
        #expect(driver.takeEventSummaries() == ["pins.changed all", "talkers.changed all but a"])
        for _ in 0..<5 { driver.send("pin.remove", ["room": "r", "participants": ["a"]]) }
        driver.fence()
        driver.pass(milliseconds: 1_000)
        #expect(driver.takeEventSummaries() == ["pins.changed all", "talkers.changed all but a"])
    }

    @Test func `a thousand hear of one list, and those on it of theirs`() throws {
        var driver = ControlDriver()
        try driver.room()
        for index in 0..<1_000 {
            try driver.join("p\(index)", ["snapshot": false])
            if index < 10 { try driver.offer("p\(index)", "0:audio:sendonly") }
        }
        for index in 0..<10 { try driver.begin("p\(index)") }
        driver.pass(milliseconds: 1_000)
        _ = driver.takeEventSummaries()
        try driver.begin("p0")
        try driver.end("p1")
        try driver.begin("p1")
        driver.pass(milliseconds: 1_000)
        let told = driver.events.filter { $0.event == "talkers.changed" }
        // Twice: one event for all who are not on it, and one each for the six who are or were.
        #expect(told.count <= 16)
        #expect(try driver.list() == "p1* p9* p8* p7* p6* p5*")
    }
}
