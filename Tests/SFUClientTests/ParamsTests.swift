import Testing

@testable import Contract
@testable import JSON

/// A method with valid params.
struct MethodRow: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let example: JSON
    let decode: @Sendable (JSON) throws -> JSON

    init<M: IPCMethod>(_ method: M.Type, _ example: String) {
        testDescription = M.name
        self.example = (try? JSON(parsing: example.bytes)) ?? .null
        decode = { JSON(encoding: try $0.decodeParams(M.Params.self)) }
    }
}

extension MethodRow {
    static let all = calls + moderation + roles + messages

    static let calls: [MethodRow] = [
        MethodRow(ServerInfo.self, "{}"),
        MethodRow(ServerStats.self, "{}"),
        MethodRow(EventsSubscribe.self, #"{"rooms":["r1"],"since":{"r1":17}}"#),
        MethodRow(
            RoomCreate.self,
            #"""
            {"room":"r1","settings":{"mode":"lecture","knock":true,"maxParticipants":50,
            "maxActiveTalkers":4,"autoRecord":false,"roles":[{"name":"guest","publish":
            {"audio":{"maxBitrate":32000},"video":{"maxWidth":640,"maxHeight":360,
            "maxFrameRate":15.0,"maxBitrate":500000},"screen":false,"maxWidth":640,
            "maxHeight":360,"maxFrameRate":15.0,"maxBitrate":500000},"subscribe":{"roles":
            ["moderator"],"maxWidth":640,"maxHeight":360,"maxBitrate":500000},
            "permissions":["mute"]}],
            "maxHosts":2,"protectedRoles":["beam"],"strictModeVocabulary":true,
            "roleRequestSeconds":30,"strictPins":false,"emptySeconds":null,
            "disconnectedSeconds":30}}
            """#
        ),
        MethodRow(RoomGet.self, #"{"room":"r1"}"#),
        MethodRow(RoomList.self, "{}"),
        MethodRow(RoomClose.self, #"{"room":"r1","by":"m1","detail":"over"}"#),
        MethodRow(
            ParticipantJoin.self,
            #"""
            {"room":"r1","participant":"p1","name":"Ann","role":"viewer","mode":"VIEWER",
            "custom":{"any":[null]}}
            """#
        ),
        MethodRow(ParticipantLeave.self, #"{"room":"r1","participant":"p1"}"#),
        MethodRow(
            TransportOffer.self,
            #"""
            {"room":"r1","participant":"p1","sdp":"v=0\r\n","transport":"t1",
            "sources":{"2":"screen"},"streams":{"0":{"name":"Ann","custom":{"k":[1]},
            "audioFallback":true},"2":{"name":null,"custom":null,"audioFallback":null}},
            "audioFallback":false}
            """#
        ),
        MethodRow(
            TransportClose.self,
            #"{"room":"r1","participant":"p1","transport":"t1"}"#
        ),
        MethodRow(StreamList.self, #"{"room":"r1"}"#),
        MethodRow(
            StreamUpdate.self,
            #"{"room":"r1","stream":"s1","audio":false,"video":true}"#
        ),
        MethodRow(StreamUnpublish.self, #"{"room":"r1","stream":"s1","by":"m1"}"#),
        MethodRow(
            SubscriptionAdd.self,
            #"""
            {"room":"r1","participant":"p1","stream":"s1","audioMid":"0","videoMid":"1",
            "preferredResolution":{"width":640,"height":360},"preferredFrameRate":15.0,
            "priority":10,"audioFallback":true}
            """#
        ),
        MethodRow(
            SubscriptionUpdate.self,
            #"""
            {"room":"r1","subscription":"u","stream":"s","audio":true,"video":false,"priority":null,
            "preferredResolution":null,"preferredFrameRate":null,"audioFallback":null}
            """#
        ),
        MethodRow(
            TalkersSubscribe.self,
            #"""
            {"room":"r1","participant":"p1","audioMids":["0","2"],"videoMids":[],
            "preferredResolution":{"width":640,"height":360},"preferredFrameRate":15.0}
            """#
        ),
        MethodRow(SubscriptionRemove.self, #"{"room":"r1","subscription":"u1"}"#),
        MethodRow(
            StatsGet.self,
            #"{"room":"r1","participant":"p1","subscription":"u1"}"#
        ),
        MethodRow(StatsSubscribe.self, #"{"rooms":["r1"],"seconds":5}"#),
    ]

    static let moderation: [MethodRow] = [
        MethodRow(RoomSetState.self, #"{"room":"r1","state":"ready","by":"m1"}"#),
        MethodRow(
            RoomUpdate.self,
            #"{"room":"r1","custom":{"any":1},"settings":{"knock":true},"by":"m1"}"#
        ),
        MethodRow(RoomLock.self, #"{"room":"r1","by":"m1"}"#),
        MethodRow(RoomUnlock.self, #"{"room":"r1","by":"m1"}"#),
        MethodRow(RoomHardMute.self, #"{"room":"r1","by":"m1","sparing":"moderators"}"#),
        MethodRow(RoomHardUnmute.self, #"{"room":"r1","by":"m1"}"#),
        MethodRow(
            ParticipantDrop.self,
            #"{"room":"r1","participants":["p1","p2"],"by":"m1","detail":"loud"}"#
        ),
        MethodRow(ParticipantApprove.self, #"{"room":"r1","participant":"p1","by":"m1"}"#),
        MethodRow(ParticipantDeny.self, #"{"room":"r1","participant":"p1","by":"m1"}"#),
        MethodRow(
            ParticipantSetMode.self,
            #"{"room":"r1","participant":"p1","mode":"CONFERENCE","by":"m1"}"#
        ),
        MethodRow(
            ParticipantHardMute.self,
            #"{"room":"r1","participant":"p1","media":["audio","video"],"by":"m1"}"#
        ),
        MethodRow(
            ParticipantHardUnmute.self,
            #"{"room":"r1","participant":"p1","media":["audio"],"by":"m1"}"#
        ),
        MethodRow(ModeratorTransfer.self, #"{"room":"r1","participant":"p1","by":"m1"}"#),
        MethodRow(PinAdd.self, #"{"room":"r1","participants":["p1"],"by":"m1"}"#),
        MethodRow(PinRemove.self, #"{"room":"r1","participants":["p1"],"by":"m1"}"#),
    ]

    static let roles: [MethodRow] = [
        MethodRow(
            RoleChange.self,
            #"{"room":"r1","participant":"p1","role":"guest","force":true,"by":"m1"}"#
        ),
        MethodRow(RoleAccept.self, #"{"room":"r1","participant":"p1","request":"req-1"}"#),
        MethodRow(RoleDecline.self, #"{"room":"r1","participant":"p1","request":"req-1"}"#),
        MethodRow(
            RoleRequests.self,
            #"{"room":"r1","participant":"p1","limit":10,"after":"7"}"#
        ),
        MethodRow(
            RoleChangeAll.self,
            #"{"room":"r1","role":"guest","from":["viewer"],"by":"m1"}"#
        ),
        MethodRow(FloorRequest.self, #"{"room":"r1","participant":"p1"}"#),
        MethodRow(FloorCancel.self, #"{"room":"r1","participant":"p1"}"#),
        MethodRow(FloorFinish.self, #"{"room":"r1","participant":"p1"}"#),
        MethodRow(FloorGrant.self, #"{"room":"r1","participant":"p1","by":"m1"}"#),
        MethodRow(FloorDeny.self, #"{"room":"r1","participant":"p1","by":"m1"}"#),
        MethodRow(FloorRelease.self, #"{"room":"r1","participant":"p1","by":"m1"}"#),
    ]

    static let messages: [MethodRow] = [
        MethodRow(RecordingStart.self, #"{"room":"r1","by":"m1","streams":["str-1"]}"#),
        MethodRow(RecordingStop.self, #"{"room":"r1","by":"m1"}"#),
        MethodRow(RecordingList.self, #"{"room":"r1","limit":10,"after":"7"}"#),
        MethodRow(RecordingFiles.self, #"{"recording":"rec-1","limit":10,"after":"7"}"#),
        MethodRow(
            StreamingStart.self,
            #"""
            {"room":"r1","url":"rtmp://h/app/key","layout":"page","page":{"url":"https://h/"},
            "width":640,"height":360,"bitrate":600000,"by":"m1"}
            """#
        ),
        MethodRow(
            TapStart.self,
            #"""
            {"room":"r1","stream":"str-1","audio":{"address":"127.0.0.1:5000"},
            "video":{"address":"127.0.0.1:5002"},"by":"m1"}
            """#
        ),
        MethodRow(TapStop.self, #"{"room":"r1","tap":"tap-1","by":"m1"}"#),
        MethodRow(TapList.self, #"{"room":"r1"}"#),
        MethodRow(StreamingStop.self, #"{"room":"r1","streaming":"live-1","by":"m1"}"#),
        MethodRow(
            MessagePublish.self,
            #"""
            {"room":"r1","topic":"chat","message":"hello","payload":"any","from":"p1",
            "to":["p2"],"persist":true}
            """#
        ),
        MethodRow(
            MessageSubscribe.self,
            #"{"room":"r1","participant":"p1","topic":"chat"}"#
        ),
        MethodRow(
            MessageUnsubscribe.self,
            #"{"room":"r1","participant":"p1","topic":"chat"}"#
        ),
    ]
}

@Suite struct ParamsTests {
    @Test(arguments: MethodRow.all)
    func `keeps what is right`(_ method: MethodRow) throws {
        #expect(try method.decode(method.example) == method.example)
    }

    /// Returns every object in the params, with its path.
    static func objects(in json: JSON, _ path: String = "") -> [(path: String, keys: [String])] {
        switch json {
        case .object(let members) where !isCustom(path):
            var found = [(path, members.keys.sorted())]
            for (key, value) in members {
                found += objects(in: value, path.isEmpty ? key : "\(path).\(key)")
            }
            return found
        case .array(let elements):
            return elements.enumerated().flatMap { objects(in: $1, "\(path)[\($0)]") }
        default: return []
        }
    }

    /// Objects whose keys are ids.
    static let dictionaries = ["since", "sources", "streams"]

    /// Whether any object may stand at a path.
    static func isCustom(_ path: String) -> Bool { path == "custom" || path.hasSuffix(".custom") }

    /// Returns `json` with the member at `path` replaced.
    static func replacing(_ json: JSON, _ path: [String], with value: JSON?) -> JSON {
        guard let key = path.first else { return value ?? .null }
        let rest = Array(path.dropFirst())
        if case .array(var elements) = json, let index = Int(key) {
            elements[index] = replacing(elements[index], rest, with: value)
            return .array(elements)
        }
        guard case .object(var members) = json else { return json }
        members[key] = rest.isEmpty ? value : replacing(members[key] ?? .null, rest, with: value)
        return .object(members)
    }

    static func steps(_ path: String) -> [String] {
        path.split { ".[]".contains($0) }.map(String.init)
    }

    func refusal(_ method: MethodRow, _ json: JSON) -> IPCError? {
        do {
            _ = try method.decode(json)
            return nil
        } catch {
            return error as? IPCError
        }
    }

    @Test(arguments: MethodRow.all)
    func `names an unknown key, at every depth`(_ method: MethodRow) {
        for object in Self.objects(in: method.example)
        where !Self.dictionaries.contains(object.path) {
            let path = object.path.isEmpty ? "foo" : "\(object.path).foo"
            let json = Self.replacing(method.example, Self.steps(path), with: 1)
            let refusal = refusal(method, json)
            #expect(refusal?.code == -32602)
            #expect(refusal?.message == "unknown parameter \"\(path)\"")
            #expect(refusal?.reason == "invalid-params")
            #expect(refusal?.details["parameter"] == .string(path))
        }
    }

    @Test(arguments: MethodRow.all)
    func `names a key of a wrong type, and a required one that is null`(_ method: MethodRow) {
        for object in Self.objects(in: method.example) {
            for key in object.keys {
                let path = object.path.isEmpty ? key : "\(object.path).\(key)"
                for wrong: JSON in [.null, [[]], ["a": ["b": .null]], .number(-1.5)] {
                    // Null unsets whatever is optional.
                    let without = Self.replacing(method.example, Self.steps(path), with: nil)
                    if wrong == .null, self.refusal(method, without) == nil { continue }
                    let json = Self.replacing(method.example, Self.steps(path), with: wrong)
                    if Self.isCustom(path), case .object = wrong { continue }
                    if path == "payload" { continue }
                    let refusal = refusal(method, json)
                    #expect(refusal?.code == -32602, "\(path) \(wrong)")
                    guard case .string(let named) = refusal?.details["parameter"] else {
                        Issue.record("no parameter named for \(path) \(wrong)")
                        continue
                    }
                    #expect(named.hasPrefix(path), "\(path) \(wrong)")
                }
            }
        }
    }

    @Test(arguments: MethodRow.all)
    func `misses what is required and nothing else`(_ method: MethodRow) {
        let required = [
            "room", "participant", "sdp", "stream", "subscription", "width", "height", "name",
            "state", "participants", "media", "topic", "message", "request", "audioMids",
            "videoMids", "seconds",
        ]
        let here: [String: [String]] = [
            ParticipantSetMode.name: ["mode"], ModeratorTransfer.name: ["by"],
            RoleChange.name: ["role"], RoleChangeAll.name: ["role"], StreamingStart.name: ["url"],
            TapStart.name: ["address"], TapStop.name: ["tap"], RecordingFiles.name: ["recording"],
        ]
        for object in Self.objects(in: method.example)
        where !Self.dictionaries.contains(object.path) {
            for key in object.keys {
                let path = object.path.isEmpty ? key : "\(object.path).\(key)"
                let json = Self.replacing(method.example, Self.steps(path), with: nil)
                guard let refusal = refusal(method, json) else { continue }
                let known = required + (here[method.testDescription] ?? [])
                #expect(known.contains(key), "\(path) is not required")
                #expect(refusal.message == "parameter \"\(path)\" is missing")
            }
        }
    }

    static let ids: [Row<String, Bool>] = [
        Row("empty", "", false),
        Row("one", "a", true),
        Row("all characters", "AZaz09._:-", true),
        Row("128", String(repeating: "x", count: 128), true),
        Row("129", String(repeating: "x", count: 129), false),
        Row("space", "a b", false),
        Row("slash", "a/b", false),
        Row("umlaut", "ä", false),
        Row("NUL", "a\0", false),
        Row("newline", "a\n", false),
    ]

    @Test(arguments: ids)
    func `takes ids of the charset and length only`(_ row: Row<String, Bool>) {
        #expect((RoomID(rawValue: row.input) != nil) == row.output)
        let params: JSON = ["room": .string(row.input)]
        let decoded = try? params.decodeParams(RoomOnly.self)
        #expect((decoded != nil) == row.output)
    }

    static let numbers: [Row<JSON, String?>] = [
        Row("least", 1, nil),
        Row("most", 100_000, nil),
        Row("with a point", .number(50), nil),
        Row("none", 0, "must be 1 to 100000"),
        Row("too many", 100_001, "must be 1 to 100000"),
        Row("fraction", .number(1.5), "must be an integer"),
        Row("2^53 + 1", 9_007_199_254_740_993, "must be 1 to 100000"),
        Row("1e300", .number(1e300), "is out of range"),
        Row("string", "5", "must be an integer"),
        Row("boolean", true, "must be an integer"),
    ]

    @Test(arguments: numbers)
    func `takes whole numbers within bounds only`(_ row: Row<JSON, String?>) {
        let params: JSON = ["room": "r", "settings": ["maxParticipants": row.input]]
        var refusal: IPCError?
        do throws(IPCError) {
            _ = try params.decodeParams(RoomCreate.Params.self)
        } catch {
            refusal = error
        }
        let expected = row.output.map { "parameter \"settings.maxParticipants\" \($0)" }
        #expect(refusal?.message == expected)
    }

    @Test(arguments: ["mode", "kind"])
    func `a word that is not known names its parameter`(word: String) {
        let params: JSON = ["room": "r", "settings": ["mode": .string(word)]]
        let refusal = #expect(throws: IPCError.self) {
            _ = try params.decodeParams(RoomCreate.Params.self)
        }
        #expect(refusal?.details["parameter"] == "settings.mode")
        #expect(refusal?.message == "parameter \"settings.mode\" has a value that is not known")
    }

    @Test func `old names of modes are known as such`() throws {
        for (name, mode, isOld): (JSON, ParticipantMode, Bool) in [
            ("CONFERENCE", .sendAndReceive, true), ("VIEWER", .signallingOnly, true),
            ("SEND_AND_RECV", .sendAndReceive, false), ("RECV_ONLY", .receiveOnly, false),
        ] {
            let params: JSON = ["room": "r", "participant": "p", "mode": name]
            let requested = try params.decodeParams(ParticipantJoin.Params.self).mode
            #expect(requested?.mode == mode)
            #expect(requested?.isOldName == isOld)
        }
    }
}
