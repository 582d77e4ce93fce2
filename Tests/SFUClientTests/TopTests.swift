import Contract
import JSON
import Testing

@testable import sfuctl

/// Rates, sums and texts of `sfuctl top`.
@Suite struct TopTests {
    private static func transport(
        _ participant: ParticipantID,
        time: Double?,
        in bytesIn: UInt64,
        out bytesOut: UInt64,
        name: TransportName = "default"
    ) -> TransportStats {
        var stats = TransportStats(
            transport: name,
            participant: participant,
            connection: .connected
        )
        stats.time = time
        stats.bytesIn = bytesIn
        stats.bytesOut = bytesOut
        return stats
    }

    private static func subscription(
        _ id: SubscriptionID,
        of participant: ParticipantID,
        kind: StreamKind = .video
    ) -> SubscriptionStats {
        SubscriptionStats(
            subscription: id,
            participant: participant,
            stream: "str-1",
            mid: "1",
            kind: kind
        )
    }

    /// A model with two participants, after two reports.
    private static func model() -> TopModel {
        var model = TopModel()
        model.take(
            RoomStats(transports: [
                transport("a", time: 10, in: 1_000, out: 0),
                transport("b", time: 10, in: 0, out: 500),
            ]),
            of: "r",
            at: 0
        )
        var first = transport("a", time: 12, in: 251_000, out: 0)
        first.roundTripTime = 40
        first.remote = "192.0.2.1:5000"
        var second = transport("b", time: 12, in: 0, out: 1_000_500)
        second.estimate = 2_500_000
        var encoding = EncodingStats(rid: nil, ssrc: 1, active: true)
        encoding.fractionLost = 0.25
        encoding.jitter = 7
        var idle = EncodingStats(rid: "q", ssrc: 2, active: false)
        idle.fractionLost = 1
        var watched = subscription("sub-1", of: "b")
        watched.packets = 10
        watched.fractionLost = 0.02
        watched.jitter = 12
        watched.freezes = 3
        watched.freezeSeconds = 4.5
        var unused = subscription("sub-2", of: "b")
        unused.fractionLost = 1
        model.take(
            RoomStats(
                transports: [first, second],
                streams: [
                    StreamStats(
                        stream: "str-1",
                        participant: "a",
                        mid: "0",
                        kind: .video,
                        codec: nil,
                        encodings: [encoding, idle]
                    )
                ],
                subscriptions: [watched, unused, subscription("sub-3", of: "b", kind: .audio)]
            ),
            of: "r",
            at: 1
        )
        return model
    }

    @Test func `rates are counted between two reports, and the worst of each is shown`() throws {
        let rows = Self.model().participants(by: .name)
        #expect(rows.map(\.participant) == ["a", "b"])
        let (a, b) = (try #require(rows.first), try #require(rows.last))
        #expect(a.bitrateIn == 1_000_000 && a.bitrateOut == 0)
        #expect(b.bitrateIn == 0 && b.bitrateOut == 4_000_000)
        #expect(a.lossIn == 0.25 && a.lossOut == nil && a.roundTripTime == 40 && a.jitter == 7)
        #expect(b.lossIn == nil && b.lossOut == 0.02 && b.jitter == 12)
        #expect(b.estimate == 2_500_000 && b.freezes == 3 && b.freezeSeconds == 4.5)
        #expect(b.videos == ["sub-1", "sub-2"])
    }

    @Test func `a transport that begins anew has no rate until its second report`() throws {
        var model = Self.model()
        model.take(
            RoomStats(transports: [Self.transport("a", time: 13, in: 10, out: 10)]),
            of: "r",
            at: 2
        )
        let row = try #require(model.participants(by: .name).first)
        #expect(row.bitrateIn == nil && row.bitrateOut == 10 * 8)
        #expect(model.participants(by: .name).count == 1, "b has left")
    }

    @Test func `the transports of a participant are added up`() throws {
        var model = TopModel()
        for time in [1.0, 2.0] {
            let bytes = UInt64(time) * 1_000
            model.take(
                RoomStats(transports: [
                    Self.transport("a", time: time, in: bytes, out: 0),
                    Self.transport("a", time: time, in: bytes, out: 0, name: "screen"),
                ]),
                of: "r",
                at: time
            )
        }
        #expect(model.participants(by: .in).map(\.bitrateIn) == [16_000])
    }

    @Test func `a report in parts counts when it is whole`() {
        var model = TopModel()
        func part(_ number: Int, _ id: ParticipantID, next: Int?) -> RoomStats {
            RoomStats(
                transports: [Self.transport(id, time: 1, in: 0, out: 0)],
                part: number,
                next: next
            )
        }
        model.take(part(1, "a", next: 2), of: "r", at: 0)
        #expect(model.count == 0)
        model.take(part(2, "b", next: nil), of: "r", at: 0)
        #expect(model.count == 2 && !model.isComplete(["r"]))
        // One that was left off counts for nothing.
        model.take(part(1, "c", next: 2), of: "r", at: 1)
        model.take(part(1, "a", next: nil), of: "r", at: 1)
        #expect(model.count == 1 && model.isComplete(["r"]) && !model.isComplete(["r", "s"]))
        model.forget(at: 1 + TopModel.patience)
        #expect(model.count == 0)
    }

    @Test(
        arguments: [
            (TopSort.name, ["a", "b"]), (.in, ["a", "b"]), (.out, ["b", "a"]), (.loss, ["a", "b"]),
            (.rtt, ["a", "b"]), (.jitter, ["b", "a"]), (.freezes, ["b", "a"]),
        ] as [(TopSort, [ParticipantID])]
    )
    func `the worst or largest come first`(_ sort: TopSort, _ order: [ParticipantID]) {
        #expect(Self.model().participants(by: sort).map(\.participant) == order)
    }

    @Test func `the most urgent limit of a participant's videos is shown`() {
        var model = Self.model()
        #expect(model.participants(by: .name).last?.limit == nil)
        model.take(.publisher, of: "sub-1")
        model.take(.bandwidth, of: "sub-2")
        #expect(model.participants(by: .name).last?.limit == .bandwidth)
        model.forget(at: 1)
        #expect(model.participants(by: .name).last?.limit == .bandwidth)
    }

    @Test func `rooms are the sums of their participants`() throws {
        let room = try #require(Self.model().rooms(by: .in).first)
        #expect(room.participants == 2 && room.bitrateIn == 1_000_000)
        #expect(room.bitrateOut == 4_000_000 && room.loss == 0.25 && room.jitter == 12)
        #expect(room.freezes == 3 && room.roundTripTime == 40)
    }

    @Test func `a table has a line for each participant`() {
        var model = Self.model()
        model.take(.bandwidth, of: "sub-1")
        let lines = TopView(sort: .loss).text(model).split(separator: "\n").map(String.init)
        let words = lines.suffix(2).map { $0.split(separator: " ").map(String.init) }
        #expect(lines.first == "sfud has not answered yet")
        #expect(
            words[0] == [
                "r", "a", "connected", "1.0M", "0k", "25", "%", "-", "40", "ms", "7.0", "ms", "-",
                "-", "0", "0.0", "s",
            ]
        )
        #expect(
            words[1] == [
                "r", "b", "connected", "0k", "4.0M", "-", "2.0", "%", "-", "12", "ms", "2.5M",
                "bandwidth", "3", "4.5", "s",
            ]
        )
    }

    @Test func `a screen holds no more than there is room for`() {
        var view = TopView(sort: .name)
        let model = Self.model()
        let lines = view.screen(model, rows: 5, columns: 40)
        #expect(lines.count == 5 && lines.allSatisfy { $0.count <= 40 })
        #expect(lines[3].hasPrefix("ROOM") && lines[4].hasPrefix("r"))
        // Scrolled to the end, the last row is still there.
        view.offset = 9
        #expect(view.screen(model, rows: 5, columns: 40).last?.contains("b") == true)
        #expect(view.screen(model, rows: 0, columns: 0) == [])
    }

    @Test func `keys sort, scroll, change the view and quit`() {
        var view = TopView()
        func press(_ key: Character) -> Bool {
            view.take(key.asciiValue ?? 0, page: 3, rows: 5)
        }
        for sort in TopSort.allCases {
            #expect(press(sort.key) && view.sort == sort)
        }
        #expect(press(" ") && view.offset == 3 && press(" ") && view.offset == 4)
        #expect(press("b") && view.offset == 1 && press("b") && view.offset == 0)
        #expect(press("r") && view.showsRooms && press("r") && !view.showsRooms)
        #expect(press("x") && !press("q") && !view.take(TopView.interrupt, page: 1, rows: 1))
    }

    @Test(
        arguments: [
            (nil, "-"), (-1, "-"), (.nan, "-"), (0, "0k"), (999_400, "999k"), (1_000_000, "1.0M"),
            (2_460_000_000, "2.5G"),
        ] as [(Double?, String)]
    )
    func `rates are short`(_ rate: Double?, _ text: String) {
        #expect(TopView.rate(rate) == text)
    }

    @Test func `the JSON has the participants and the server`() throws {
        var model = Self.model()
        model.take(ServerStats.Result(workers: [], rooms: 1, participants: 2, uptimeSeconds: 5))
        let json = TopView.json(model, by: .loss)
        guard case .array(let rows)? = json["participants"] else {
            Issue.record("no list")
            return
        }
        #expect(
            rows.count == 2 && rows[0]["participant"] == "a" && rows[0]["lossIn"] == .number(0.25)
        )
        #expect(json["server"]?["rooms"] == 1)
    }

    @Test func `the server's rates are those between two answers`() {
        var model = TopModel()
        var counters = PacketCounters()
        for step in 1...2 {
            counters.bytesIn = UInt64(step) * 1_000
            let worker = WorkerInfo(worker: 0, load: 0, transports: 0, counters: counters)
            model.take(
                ServerStats.Result(
                    workers: [worker],
                    rooms: 0,
                    participants: 0,
                    uptimeSeconds: Double(step) * 2
                )
            )
        }
        #expect(model.serverRates?.in == 4_000 && model.serverRates?.out == 0)
    }
}
