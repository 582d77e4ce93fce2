import RTP
import Rooms
import Testing
import WorkerInterface

@Suite struct RoomMirrorTests {

    /// A call, and the commands that it sends to the workers.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var call: @Sendable (inout RoomDriver) throws -> Void
        var words: [String]

        init(
            _ testDescription: String,
            _ call: @escaping @Sendable (inout RoomDriver) throws -> Void,
            _ words: [String]
        ) {
            self.testDescription = testDescription
            self.call = call
            self.words = words
        }
    }

    /// Makes a room: `a` sends from worker 0; `b` is on 1, `c` on 2, `d` on 0, `e` on 1.
    private func meeting(
        _ settings: Room.Settings = Room.Settings(),
        sending: String...
    ) throws -> RoomDriver {
        var story = RoomDriver(settings, workers: 3, spread: 0)
        for id in ["a", "b", "c", "d", "e"] {
            try story.join(id, role: id == "a" ? Room.Role.moderatorName : nil)
        }
        try story.apply(.offer(Room.Offer(participant: "a", sdp: SmallOffer(sending).text)))
        for id in ["b", "c", "d", "e"] {
            try story.offer(id, "0:audio:recvonly", "1:audio:recvonly")
        }
        return story
    }

    static let story: [Row] = [
        Row(
            "the first viewer elsewhere",
            { try $0.watch("b", of: "a") },
            ["0 relay p0 to 1:p0", "1 mirror p0 of 0:p0 open", "1 bind s0 p0"]
        ),
        Row("a viewer at home", { try $0.watch("d", of: "a") }, ["0 bind s0 p0"]),
        Row(
            "in a third worker",
            { try $0.watch("c", of: "a") },
            ["0 relay p0 to 1:p0 2:p0", "2 mirror p0 of 0:p0 open", "2 bind s0 p0"]
        ),
        Row("beside another", { try $0.watch("e", of: "a") }, ["1 bind s2 p0"]),
        Row(
            "the publisher's own switch",
            { try $0.turn("a", audio: false) },
            ["0 gate p0 closed", "1 gate p0 closed", "2 gate p0 closed"]
        ),
        Row(
            "the last one in a worker leaves",
            { try $0.apply(.leave(participant: "c")) },
            [
                "0 relay p0 to 1:p0", "2 bind s0 nothing", "2 close t0", "2 unmirror p0",
                "2 free p0",
            ]
        ),
        Row(
            "a mirror made while the gate is closed",
            { story in
                try story.join("c")
                try story.offer("c", "0:audio:recvonly")
                try story.watch("c", of: "a")
            },
            ["0 relay p0 to 1:p0 2:p1", "2 mirror p1 of 0:p0 closed", "2 bind s2 p1"]
        ),
        Row(
            "the switch again",
            { try $0.turn("a", audio: true) },
            ["0 gate p0 open", "1 gate p0 open", "2 gate p1 open"]
        ),
        Row(
            "a viewer's own switch",
            { try $0.turn(viewer: "b", audio: false) },
            ["1 bind s0 p0 closed"]
        ),
        Row(
            "one of two unsubscribes",
            { try $0.unwatch("b") },
            ["1 bind s0 nothing"]
        ),
        Row(
            "the other one, too",
            { try $0.unwatch("e") },
            ["0 relay p0 to 2:p1", "1 bind s2 nothing", "1 unmirror p0", "1 free p0"]
        ),
        Row(
            "another extension is agreed on",
            { try $0.offer("a", "0:audio:sendonly:1") },
            ["0 configure t0", "2 mirror p1 of 0:p0 open"]
        ),
        Row(
            "nothing new is agreed on",
            { try $0.offer("a", "0:audio:sendonly:1") },
            ["0 configure t0"]
        ),
        Row(
            "the m-line stops",
            { try $0.offer("a", "0:audio:inactive") },
            [
                "0 bind s0 nothing", "0 configure t0", "2 bind s2 nothing", "2 unmirror p1",
                "0 free p0", "2 free p1",
            ]
        ),
    ]

    @Test func `mirrors come and go with those who watch`() throws {
        var story = try meeting(sending: "0:audio:sendonly")
        for row in Self.story {
            try row.call(&story)
            #expect(story.words == row.words, "\(row.testDescription)")
        }
    }

    @Test func `a slot that changes its source has the new one before the old one ends`() throws {
        var story = try meeting(sending: "0:audio:sendonly")
        try story.offer("d", "0:audio:sendrecv", "1:audio:recvonly")
        try story.watch("b", of: "a")
        try story.rewatch("b", of: "d")
        #expect(
            story.words == [
                "0 relay p0 to", "0 relay p1 to 1:p1", "1 mirror p1 of 0:p1 open",
                "1 bind s0 p1", "1 unmirror p0", "1 free p0",
            ]
        )
    }

    @Test func `a publisher's end is the end of its mirrors`() throws {
        let ends: [(String, Room.Call, [String])] = [
            ("leaves", .leave(participant: "a"), ["0 close t0"]),
            ("closes", .closeTransport(participant: "a", transport: "main"), ["0 close t0"]),
            ("comes anew", .join(Room.Join(participant: "a")), ["0 close t0"]),
        ]
        for (name, call, atHome) in ends {
            var story = try meeting(sending: "0:audio:sendonly")
            try story.watch("b", of: "a")
            try story.watch("c", of: "a")
            try story.apply(call)
            let elsewhere = ["1", "2"].flatMap { ["\($0) bind s0 nothing", "\($0) unmirror p0"] }
            let freed = ["0 free p0", "1 free p0", "2 free p0"]
            #expect(story.words == atHome + elsewhere + freed, "\(name)")
        }
    }

    @Test func `an unpublished stream has no mirrors`() throws {
        var story = try meeting(sending: "0:audio:sendonly")
        try story.watch("b", of: "a")
        let stream = try #require(story.room.streamsInOrder.first)
        try story.apply(.unpublish(stream.id, by: nil))
        #expect(
            story.words == [
                "0 gate p0 closed", "0 relay p0 to", "1 bind s0 nothing", "1 unmirror p0",
                "1 free p0",
            ]
        )
    }

    @Test func `a waiting host is mirrored once the place is free`() throws {
        var settings = Room.Settings()
        settings.kind = .singleHost
        var story = RoomDriver(settings, workers: 2, spread: 0)
        for id in ["one", "two"] {
            try story.join(id, role: Room.Role.moderatorName)
            try story.offer(id, "0:audio:sendrecv")
        }
        #expect(story.words.contains("1 gate p0 closed"))
        try story.offer("one", "0:audio:recvonly")
        #expect(story.words.contains("1 gate p0 open"))
        try story.watch("one", of: "two")
        #expect(
            story.words == ["0 mirror p1 of 1:p0 open", "0 bind s0 p1", "1 relay p0 to 0:p1"]
        )
    }

    @Test func `one's own stream comes back over another worker`() throws {
        var story = RoomDriver(workers: 2, spread: 0)
        try story.join("a")
        try story.offer("a", "0:audio:sendonly")
        var second = Room.Offer(participant: "a", sdp: SmallOffer(["0:audio:recvonly"]).text)
        second.transport = "second"
        try story.apply(.offer(second))
        #expect(story.words == ["1 configure t0"])
        try story.watch("a", of: "a")
        #expect(
            story.words == ["0 relay p0 to 1:p0", "1 mirror p0 of 0:p0 open", "1 bind s0 p0"]
        )
        try story.apply(.leave(participant: "a"))
        #expect(
            story.words == [
                "0 close t0", "1 bind s0 nothing", "1 close t0", "1 unmirror p0", "0 free p0",
                "1 free p0",
            ]
        )
    }

    @Test func `an end in one worker leaves the same handle in another alone`() throws {
        var story = RoomDriver(workers: 2, spread: 0)
        try story.join("a")
        try story.offer("a", "0:audio:sendrecv")
        var second = Room.Offer(participant: "a", sdp: SmallOffer(["0:video:sendonly"]).text)
        second.transport = "second"
        second.sources = ["0": .screen]
        try story.apply(.offer(second))
        try story.watch("a", of: "a")
        #expect(story.words == ["0 bind s0 p0"])
        second.sdp = SmallOffer(["0:video:inactive"]).text
        try story.apply(.offer(second))
        #expect(story.words == ["1 configure t0", "1 free p0"])
    }

    @Test func `more m-lines bring more mirrors`() throws {
        var story = try meeting(sending: "0:audio:sendonly")
        try story.offer("b", "0:audio:recvonly", "1:audio:recvonly", "2:video:recvonly")
        try story.watch("b", of: "a")
        try story.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(
            story.words == [
                "0 configure t0", "0 gate p1 open", "0 relay p1 to 1:p1",
                "1 mirror p1 of 0:p1 closed", "1 bind s4 p1", "1 gate p1 open",
            ]
        )
    }

    @Test func `only the home reports layers`() throws {
        var story = RoomDriver(workers: 2, spread: 0)
        for id in ["a", "b"] { try story.join(id) }
        try story.offer("a", "0:video:sendonly")
        try story.offer("b", "0:video:recvonly")
        try story.watch("b", of: "a")
        let id = try #require(story.room.streamsInOrder.first?.video)
        story.take(.layers(worker: 1, id, codec: .av1, []))
        #expect(story.room.streamsInOrder.first?.videoCodec == .vp8)
        story.take(.layers(worker: 0, id, codec: .av1, []))
        #expect(story.room.streamsInOrder.first?.videoCodec == .av1)
    }

    @Test func `without a handle for its mirror a stream cannot be watched`() throws {
        var story = RoomDriver(workers: 2, publications: 1, spread: 0)
        for id in ["a", "b"] { try story.join(id) }
        try story.offer("a", "0:audio:sendonly")
        try story.offer("b", "0:audio:sendrecv")
        let refusal = story.refusal { story throws(CallError) in try story.watch("b", of: "a") }
        #expect(refusal?.code == 4029)
        #expect(refusal?.details["limit"] == .text("handlesPerWorker"))
        #expect(story.room.subscriptions.isEmpty)
        // A subscription on the publisher's own worker needs none.
        try story.join("c")
        try story.offer("c", "0:audio:recvonly")
        try story.watch("c", of: "a")
        #expect(story.words == ["0 bind s0 p0"])
        // Changing a subscription's source is refused like a new one, and the old one stays.
        let change = story.refusal { story throws(CallError) in try story.rewatch("c", of: "b") }
        #expect(change?.code == 4029)
        #expect(story.room.subscriptions.count == 1)
    }

    struct PlacingRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var workers: Int
        var spread: Int
        var transports: Int
        var placed: [Int]
    }

    static let placing: [PlacingRow] = [
        PlacingRow(
            testDescription: "always the least loaded",
            workers: 2,
            spread: 0,
            transports: 5,
            placed: [3, 2]
        ),
        PlacingRow(
            testDescription: "a small room stays together",
            workers: 4,
            spread: 8,
            transports: 9,
            placed: [9, 0, 0, 0]
        ),
        PlacingRow(
            testDescription: "and takes one worker more at a time",
            workers: 4,
            spread: 8,
            transports: 12,
            placed: [9, 3, 0, 0]
        ),
        PlacingRow(
            testDescription: "a large one is evenly spread",
            workers: 4,
            spread: 8,
            transports: 60,
            placed: [15, 15, 15, 15]
        ),
    ]

    @Test(arguments: placing)
    func `transports are placed`(_ row: PlacingRow) throws {
        var story = RoomDriver(workers: row.workers, spread: row.spread)
        for index in 0..<row.transports {
            try story.join("p\(index)")
            try story.offer("p\(index)", "0:audio:recvonly")
        }
        #expect(story.shared.identifiers.map(\.transports.used) == row.placed)
        let used = row.placed.indices.filter { row.placed[$0] > 0 }
        #expect(story.room.workers == used)
        try story.apply(.close(by: nil, reason: "over"))
        #expect(story.room.workers == [0])
    }
}
