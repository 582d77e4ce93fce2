import Contract
import JSON
import SFUClient
import Testing

@testable import sfuctl

@Suite struct SfuctlTests {
    typealias Reading = Result<Invocation, UsageError>

    static let lines: [Row<[String], Reading>] = [
        Row("rooms", ["rooms"], .success(Invocation(verb: .rooms))),
        Row("path before", ["--ipc", "/a", "info"], .success(Invocation(verb: .info, path: "/a"))),
        Row("path after", ["info", "--ipc=/a"], .success(Invocation(verb: .info, path: "/a"))),
        Row("json", ["stats", "--json"], .success(Invocation(verb: .stats, isJSON: true))),
        Row("watch all", ["watch"], .success(Invocation(verb: .watch([])))),
        Row("watch two", ["watch", "a", "b"], .success(Invocation(verb: .watch(["a", "b"])))),
        Row("help", ["--help"], .success(Invocation(verb: .help(nil)))),
        Row("version", ["--version"], .success(Invocation(verb: .version))),
        Row("help of one", ["room", "-h"], .success(Invocation(verb: .help(.room)))),
        Row("help command", ["help", "call"], .success(Invocation(verb: .help(.call)))),
        Row(
            "call",
            ["call", "room.get", #"{"room":"r"}"#],
            .success(Invocation(verb: .call(method: "room.get", params: ["room": "r"])))
        ),
        Row(
            "call without params",
            ["call", "server.info"],
            .success(Invocation(verb: .call(method: "server.info", params: [:])))
        ),
        Row(
            "room that looks like an option",
            ["room", "--", "-r"],
            .success(Invocation(verb: .room("-r")))
        ),
        Row(
            "tap",
            ["tap", "r", "str-1", "127.0.0.1:5000"],
            .success(Invocation(verb: .tap("r", "str-1", host: "127.0.0.1", port: 5_000)))
        ),
        Row(
            "tap to IPv6",
            ["tap", "r", "str-1", "[::1]:5000"],
            .success(Invocation(verb: .tap("r", "str-1", host: "[::1]", port: 5_000)))
        ),
        Row(
            "tap without ports for all",
            ["tap", "r", "str-1", "127.0.0.1:65533"],
            .failure(
                UsageError(
                    message: "\"127.0.0.1:65533\" is no ADDR:PORT with a port from 1 to 65532",
                    topic: .tap
                )
            )
        ),
        Row("untap", ["untap", "r", "tap-1"], .success(Invocation(verb: .untap("r", "tap-1")))),
        Row("top", ["top"], .success(Invocation(verb: .top(TopOptions())))),
        Row(
            "top of a room, once",
            ["top", "r", "--once", "--sort", "rtt"],
            .success(Invocation(verb: .top(.init(rooms: ["r"], sort: .rtt, isOnce: true))))
        ),
        Row(
            "top by nothing known",
            ["top", "--sort=size"],
            .failure(
                UsageError(
                    message: "--sort takes one of name, in, out, loss, rtt, jitter, freezes",
                    topic: .top
                )
            )
        ),
        Row(
            "once, elsewhere",
            ["rooms", "--once"],
            .failure(UsageError(message: "no option --once"))
        ),
        Row("doctor", ["doctor", "--json"], .success(Invocation(verb: .doctor, isJSON: true))),
        Row("taps", ["taps"], .success(Invocation(verb: .taps(nil)))),
        Row("taps of a room", ["taps", "r"], .success(Invocation(verb: .taps("r")))),
        Row("nothing", [], .failure(UsageError(message: "what shall be done?"))),
        Row("no such command", ["x"], .failure(UsageError(message: "no command \"x\""))),
        Row("no such option", ["--x"], .failure(UsageError(message: "no option --x"))),
        Row("path missing", ["--ipc"], .failure(UsageError(message: "--ipc needs a path"))),
        Row(
            "operand missing",
            ["room"],
            .failure(UsageError(message: "usage: sfuctl room ROOM", topic: .room))
        ),
        Row(
            "operand too many",
            ["rooms", "a"],
            .failure(UsageError(message: "usage: sfuctl rooms", topic: .rooms))
        ),
        Row(
            "bad JSON",
            ["call", "m", "{,"],
            .failure(
                UsageError(
                    message: "params are not JSON: a key is a string (byte 1)",
                    topic: .call
                )
            )
        ),
    ]

    /// Command lines, and the method and params of each.
    static let actions: [Row<[String], Action>] = [
        Row("lock", ["lock", "r"], Action(method: "room.lock", params: ["room": "r"])),
        Row(
            "mute a room",
            ["mute", "r"],
            Action(method: "room.hardMute", params: ["room": "r", "sparing": "moderators"])
        ),
        Row(
            "unmute a room",
            ["unmute", "r"],
            Action(method: "room.hardUnmute", params: ["room": "r"])
        ),
        Row(
            "unmute one kind",
            ["unmute", "r", "p", "video"],
            Action(
                method: "participant.hardUnmute",
                params: ["room": "r", "participant": "p", "media": ["video"]]
            )
        ),
        Row(
            "mute a participant",
            ["mute", "r", "p"],
            Action(
                method: "participant.hardMute",
                params: ["room": "r", "participant": "p", "media": ["audio", "video"]]
            )
        ),
        Row(
            "drop two",
            ["drop", "r", "p", "q"],
            Action(
                method: "participant.drop",
                params: ["room": "r", "participants": ["p", "q"]]
            )
        ),
        Row(
            "approve",
            ["approve", "r", "p"],
            Action(method: "participant.approve", params: ["room": "r", "participant": "p"])
        ),
        Row(
            "floor",
            ["floor", "r", "grant", "p"],
            Action(method: "floor.grant", params: ["room": "r", "participant": "p"])
        ),
        Row(
            "role",
            ["role", "r", "p", "viewer"],
            Action(
                method: "role.change",
                params: ["room": "r", "participant": "p", "role": "viewer", "force": true]
            )
        ),
        Row(
            "unpin",
            ["unpin", "r", "p"],
            Action(method: "pin.remove", params: ["room": "r", "participants": ["p"]])
        ),
        Row(
            "state",
            ["state", "r", "ready"],
            Action(method: "room.setState", params: ["room": "r", "state": "ready"])
        ),
    ]

    @Test(arguments: actions)
    func `turns a moderator's command into a call`(_ row: Row<[String], Action>) throws {
        #expect(try Invocation(row.input) == Invocation(verb: .act(row.output)))
    }

    @Test(arguments: [
        ["mute", "r", "p", "smell"], ["floor", "r", "x", "p"], ["state", "r", "x"],
    ])
    func `rejects an invalid word of a moderator's command`(_ words: [String]) {
        let error = #expect(throws: UsageError.self) { try Invocation(words) }
        #expect(error?.topic?.rawValue == words[0])
        #expect(error?.message.contains("\"") == true)
    }

    @Test func `prints an action's result`() {
        #expect(Report.done([:]) == "")
        let result: JSON = [
            "results": [
                ["participant": "a", "dropped": true], ["participant": "b", "dropped": false],
            ],
            "fence": ["time": 1, "packets": 7],
        ]
        #expect(
            Report.done(result) == """
                a dropped
                b was not there
                done; 7 packets had passed under the old right
                """
        )
    }

    @Test(arguments: lines)
    func `reads the command line`(_ row: Row<[String], Reading>) {
        let reading: Reading
        do throws(UsageError) {
            reading = .success(try Invocation(row.input))
        } catch {
            reading = .failure(error)
        }
        #expect(reading == row.output)
    }

    @Test func `columns are as wide as they need to be`() {
        var table = Table([("NAME", .left), ("N", .right)])
        table.add(["a", "1"])
        table.add(["longer", "1000"])
        #expect(table.text == "NAME       N\na          1\nlonger  1000")
    }

    @Test func `names cannot contain terminal escapes`() {
        #expect(Table.printable("a\u{1b}[2Jb\u{202e}c\nd é😀") == "a?[2Jb?c?d é😀")
    }

    static let statuses: [Row<ClientError, Outcome>] = [
        Row("refused", .refused(.noSuchRoom("r")), .refused),
        Row("no daemon", .unreachable(path: "p", cause: "c"), .unavailable),
        Row("no reply", .timeout, .unavailable),
    ]

    @Test(arguments: statuses)
    func `the exit status reflects the outcome`(_ row: Row<ClientError, Outcome>) {
        #expect(Outcome(row.input) == row.output)
    }

    @Test func `times and durations`() {
        #expect(Report.clock(1_763_600_000.123) == "00:53:20.123")
        #expect(Report.clock(.nan) == "-")
        #expect(Report.duration(59.9) == "59 s")
        #expect(Report.duration(3_700) == "1 h 1 min")
        #expect(Report.duration(200_000) == "2 d 7 h")
    }

    @Test func `a room's report names everybody and every stream`() {
        var room = RoomInfo(room: "r1", state: .ongoing, settings: RoomSettings(), created: 0)
        room.participants = [
            ParticipantInfo(
                participant: "p1",
                name: "Ann",
                role: "moderator",
                mode: .sendAndReceive,
                state: .joined,
                hardMuted: [.audio],
                connection: .connected
            )
        ]
        let layer = LayerInfo(
            rid: "h",
            width: 640,
            height: 360,
            frameRate: 29.6,
            bitrate: 512_300,
            active: true
        )
        room.streams = [
            StreamInfo(
                stream: "s1",
                participant: "p1",
                source: .camera,
                audio: AudioInfo(codec: .opus, enabled: false),
                video: VideoInfo(codec: .vp8, layers: [layer]),
                created: 0
            )
        ]
        let report = Report.room(room)
        #expect(report.contains("p1           Ann   moderator  SEND_AND_RECV  connected   audio"))
        #expect(report.contains("opus (off)  vp8    h 640x360@30 512 kbit/s"))
        let talker = Talker(participant: "p1", stream: "s1", talking: true, pinned: false)
        #expect(Report.talkers([talker]).contains("p1           yes      no      s1"))
        #expect(Report.talkers([]) == "no talkers")
        #expect(Report.rooms([]) == "no rooms")
    }
}
