import Testing

@testable import Contract
@testable import JSON

@Suite struct ResultTests {
    func comesBack<T: Codable & Equatable>(_ value: T) throws {
        let read = try JSON(parsing: JSON.encoded(value)).decode(T.self)
        #expect(read == value)
    }

    @Test func `every result comes back as it was sent`() throws {
        var room = RoomInfo(room: "r1", state: .ongoing, settings: RoomSettings(), created: 1.5)
        let participant = ParticipantInfo(
            participant: "p1",
            name: "Ann",
            role: "viewer",
            mode: .receiveOnly,
            state: .joined
        )
        room.participants = [participant]
        room.awaited = []
        room.next = RoomPages()
        room.next?.streams = "7"
        let layer = LayerInfo(
            rid: "h",
            width: 640,
            height: 360,
            frameRate: 29.97,
            bitrate: 500_000,
            active: true
        )
        let stream = StreamInfo(
            stream: "s1",
            participant: "p1",
            source: .camera,
            name: "Ann",
            custom: ["k": [1, .null]],
            audioFallback: false,
            audio: AudioInfo(codec: .opus),
            video: VideoInfo(codec: .vp8, layers: [layer]),
            created: 2.5
        )
        room.streams = [stream]
        room.talkers = [Talker(participant: "p1", stream: "s1", talking: true, pinned: false)]
        try comesBack(room)
        try comesBack(
            ParticipantJoin.Result(
                state: .joined,
                participantInfo: participant,
                roomInfo: room
            )
        )
        try comesBack(StreamList.Result(streams: [stream]))
        try comesBack(
            TransportOffer.Result(
                transport: "t1",
                sdp: "v=0\r\n",
                mids: [MidInfo(mid: "0", kind: "audio", direction: .recvonly, stream: "s1")]
            )
        )
        try comesBack(
            SubscriptionAdd.Result(subscription: "u1", audioMid: "2", videoMid: nil)
        )
        try comesBack(
            StatsGet.Result(
                transports: [
                    TransportStats(transport: "t1", participant: "p1", connection: .connected)
                ],
                streams: [
                    StreamStats(
                        stream: "s1",
                        participant: "p1",
                        mid: "1",
                        kind: .video,
                        codec: .av1,
                        encodings: [EncodingStats(rid: nil, ssrc: 1, active: true)]
                    )
                ],
                subscriptions: [
                    SubscriptionStats(
                        subscription: "u1",
                        participant: "p2",
                        stream: "s1",
                        mid: "3",
                        kind: .audio
                    )
                ]
            )
        )
    }

    @Test func `server statistics add the workers up beside them`() throws {
        var counters = PacketCounters()
        counters.datagramsIn = 5
        counters.drops = ["gated": 2]
        let workers = (0..<2).map {
            WorkerInfo(worker: $0, load: 0.25, transports: 3, counters: counters)
        }
        let stats = ServerStats.Result(
            workers: workers,
            rooms: 1,
            participants: 2,
            uptimeSeconds: 9.5
        )
        #expect(stats.counters.datagramsIn == 10)
        #expect(stats.transports == 6)
        let json = JSON(encoding: stats)
        #expect(json["datagramsIn"] == 10)
        #expect(json["drops"] == ["gated": 4])
        try comesBack(stats)
    }

    @Test func `a result may have members that this version does not know`() throws {
        let json: JSON = ["subscription": "u1", "later": [1], "audioMid": .null]
        let result = try json.decode(SubscriptionAdd.Result.self)
        #expect(result.subscription == "u1")
        #expect(result.audioMid == nil)
    }
}
