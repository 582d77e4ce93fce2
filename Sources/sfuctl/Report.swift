import Contract
import JSON

/// Human-readable results for operators.
enum Report {
    static func rooms(_ rooms: [RoomSummary]) -> String {
        guard !rooms.isEmpty else { return "no rooms" }
        var table = Table([
            ("ROOM", .left), ("STATE", .left), ("MODE", .left), ("PARTICIPANTS", .right),
            ("STREAMS", .right), ("LOCKED", .left),
        ])
        for room in rooms.sorted(by: { $0.room < $1.room }) {
            table.add([
                room.room.rawValue, room.state.rawValue, room.mode.rawValue,
                "\(room.counts.participants)", "\(room.counts.streams)",
                room.locked ? "yes" : "no",
            ])
        }
        return table.text
    }

    static func room(_ room: RoomInfo) -> String {
        var about = Table([("ROOM", .left), (room.room.rawValue, .left)])
        if let node = room.node { about.add(["home", node]) }
        about.add(["state", room.state.rawValue])
        about.add(["mode", room.settings.mode.rawValue])
        about.add(["locked", room.locked ? "yes" : "no"])
        about.add(["hard muted", room.hardMuted ? "yes" : "no"])
        about.add(["last event", "\(room.seq)"])
        about.add(["created", "\(clock(room.created)) UTC"])
        let lists = [participants(room), streams(room.streams ?? [])]
        return ([about.text] + lists).joined(separator: "\n\n")
    }

    static func talkers(_ talkers: [Talker]) -> String {
        guard !talkers.isEmpty else { return "no talkers" }
        var table = Table([
            ("PARTICIPANT", .left), ("TALKING", .left), ("PINNED", .left), ("STREAM", .left),
        ])
        for talker in talkers {
            table.add([
                talker.participant.rawValue, talker.talking ? "yes" : "no",
                talker.pinned ? "yes" : "no", talker.stream?.rawValue ?? "-",
            ])
        }
        return table.text
    }

    private static func participants(_ room: RoomInfo) -> String {
        let all = (room.participants ?? []) + (room.awaited ?? [])
        guard !all.isEmpty else { return "no participants" }
        var table = Table([
            ("PARTICIPANT", .left), ("NAME", .left), ("ROLE", .left), ("MODE", .left),
            ("CONNECTION", .left), ("MUTED", .left),
        ])
        for one in all {
            table.add([
                one.participant.rawValue, one.name, one.role, one.mode.rawValue,
                one.state == .awaited ? "awaited" : one.connection.rawValue,
                one.hardMuted.isEmpty ? "-" : one.hardMuted.map(\.rawValue).joined(separator: " "),
            ])
        }
        return table.text
    }

    private static func streams(_ streams: [StreamInfo]) -> String {
        guard !streams.isEmpty else { return "no streams" }
        var table = Table([
            ("STREAM", .left), ("PARTICIPANT", .left), ("SOURCE", .left), ("AUDIO", .left),
            ("VIDEO", .left), ("LAYERS", .left),
        ])
        for stream in streams {
            table.add([
                stream.stream.rawValue, stream.participant.rawValue, stream.source.rawValue,
                stream.audio.map { media($0.codec, $0.enabled) } ?? "-",
                stream.video.map { media($0.codec, $0.enabled) } ?? "-",
                layers(stream.video?.layers ?? []),
            ])
        }
        return table.text
    }

    private static func media(_ codec: CodecName, _ enabled: Bool) -> String {
        enabled ? codec.rawValue : "\(codec.rawValue) (off)"
    }

    private static func layers(_ layers: [LayerInfo]) -> String {
        let active = layers.filter(\.active).map { layer in
            let rid = layer.rid.map { "\($0) " } ?? ""
            let rate = Int(layer.frameRate.rounded())
            return "\(rid)\(layer.width)x\(layer.height)@\(rate) \(layer.bitrate / 1_000) kbit/s"
        }
        return active.isEmpty ? "-" : active.joined(separator: ", ")
    }

    static func info(_ info: ServerInfo.Result) -> String {
        var table = Table([("VERSION", .left), (info.version, .left)])
        table.add(["contract", "\(info.contract)"])
        table.add(["workers", "\(info.workers)"])
        table.add(["udp", info.udp.joined(separator: " ")])
        if let tcp = info.tcp { table.add(["tcp", tcp.joined(separator: " ")]) }
        table.add(["fingerprint", info.fingerprint])
        table.add(["started", "\(clock(info.started)) UTC"])
        table.add(["boot", info.boot])
        table.add(["draining", info.draining ? "yes" : "no"])
        if case .object(let limits) = JSON(encoding: info.limits) {
            for (name, value) in limits.sorted(by: { $0.key < $1.key }) {
                table.add(["limit \(name)", String(decoding: JSON.encoded(value), as: UTF8.self)])
            }
        }
        return table.text
    }

    /// Formats an event as one line; long data is not cut.
    static func event(_ event: IPCEvent) -> String {
        let audience =
            switch event.audience {
            case .all: "all"
            case .participants(let list) where list.isEmpty: "nobody"
            case .participants(let list): list.map(\.rawValue).joined(separator: ",")
            case .except(let list): "all-but:" + list.map(\.rawValue).joined(separator: ",")
            }
        let data = String(decoding: JSON.encoded(event.data), as: UTF8.self)
        let room = event.room?.rawValue ?? "-"
        return Table.printable(
            "\(clock(event.time)) \(room) \(event.seq) \(event.event) audience=\(audience) \(data)"
        )
    }

    /// Formats Unix seconds as the time of day in UTC.
    static func clock(_ seconds: Double) -> String {
        let day = 86_400_000.0
        guard seconds.isFinite, seconds >= 0 else { return "-" }
        let milliseconds = Int((seconds * 1_000).truncatingRemainder(dividingBy: day))
        func digits(_ number: Int, _ width: Int) -> String {
            let text = "\(number)"
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        return digits(milliseconds / 3_600_000, 2) + ":" + digits(milliseconds / 60_000 % 60, 2)
            + ":" + digits(milliseconds / 1_000 % 60, 2) + "." + digits(milliseconds % 1_000, 3)
    }
}
