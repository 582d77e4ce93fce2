import Contract
import JSON

/// Text of what `sfuctl top` shows.
struct TopView {
    var sort = TopSort.loss
    /// Whether rooms are shown rather than participants.
    var showsRooms = false
    /// Number of rows that were scrolled over.
    var offset = 0
    /// Fault, while nothing new comes.
    var trouble: String?

    /// Returns the lines for a terminal, none wider or more than it holds.
    func screen(_ model: TopModel, rows: Int, columns: Int) -> [String] {
        let head = header(model) + [keys, ""]
        let body = table(model)
        let room = max(rows - head.count - 1, 0)
        let last = max(body.count - 1 - room, 0)
        let lines = head + body.prefix(1) + body.dropFirst(1 + min(offset, last)).prefix(room)
        return lines.prefix(rows).map { String($0.prefix(columns)) }
    }

    /// Returns the whole text, for a file or a pipe.
    func text(_ model: TopModel) -> String {
        (header(model) + [""] + table(model)).joined(separator: "\n")
    }

    /// Returns the same as JSON.
    static func json(_ model: TopModel, by sort: TopSort) -> JSON {
        var members: [String: JSON] = [
            "participants": .array(model.participants(by: sort).map { JSON(encoding: $0) })
        ]
        if let server = model.server { members["server"] = JSON(encoding: server) }
        return .object(members)
    }

    /// Subscriptions to video among the rows that are shown first.
    func videos(_ model: TopModel, rows: Int) -> [SubscriptionInRoom] {
        model.participants(by: sort).dropFirst(offset).prefix(rows).flatMap { row in
            row.videos.map { SubscriptionInRoom(room: row.room, subscription: $0) }
        }
    }

    private func header(_ model: TopModel) -> [String] {
        guard let server = model.server else { return [trouble ?? "sfud has not answered yet"] }
        var first = ["up \(Report.duration(server.uptimeSeconds))"]
        first += ["\(server.rooms) rooms", "\(server.participants) participants"]
        if let rates = model.serverRates {
            first += ["in \(Self.rate(rates.in)) bit/s", "out \(Self.rate(rates.out)) bit/s"]
        }
        var second = server.workers.map { worker in
            let step = worker.pressure.step == .none ? "" : " sheds \(worker.pressure.step)"
            return "worker \(worker.worker): \(Self.percent(worker.pressure.busy)) busy\(step)"
        }
        let lost = server.counters.kernelDrops
        if lost > 0 { second.append("\(lost) datagrams lost in the kernel") }
        if server.joinsRefused > 0 { second.append("\(server.joinsRefused) joins refused") }
        let lines = [first, second].map { $0.joined(separator: ", ") }
        return trouble.map { lines + [$0] } ?? lines
    }

    private var keys: String {
        let sorts = TopSort.allCases.map { sort in
            let name = "\(sort.key) \(sort.rawValue)"
            return sort == self.sort ? "[\(name)]" : name
        }
        let view = showsRooms ? "r participants" : "r rooms"
        return (["sort:"] + sorts + ["|", view, "|", "space b scroll", "|", "q quit"])
            .joined(separator: " ")
    }

    /// Returns the title and the rows.
    private func table(_ model: TopModel) -> [String] {
        let text = showsRooms ? rooms(model) : participants(model)
        return text.split(separator: "\n").map(String.init)
    }

    private func participants(_ model: TopModel) -> String {
        var table = Table([
            ("ROOM", .left), ("PARTICIPANT", .left), ("STATE", .left), ("IN", .right),
            ("OUT", .right), ("LOSS IN", .right), ("LOSS OUT", .right), ("RTT", .right),
            ("JITTER", .right), ("ESTIMATE", .right), ("LIMIT", .left), ("FREEZES", .right),
            ("FROZEN", .right),
        ])
        for row in model.participants(by: sort) {
            table.add([
                row.room.rawValue, row.participant.rawValue, row.connection.rawValue,
                Self.rate(row.bitrateIn), Self.rate(row.bitrateOut), Self.percent(row.lossIn),
                Self.percent(row.lossOut), Self.milliseconds(row.roundTripTime),
                Self.milliseconds(row.jitter), Self.rate(row.estimate.map(Double.init)),
                row.limit?.rawValue ?? "-", "\(row.freezes)", Self.seconds(row.freezeSeconds),
            ])
        }
        return table.text
    }

    private func rooms(_ model: TopModel) -> String {
        var table = Table([
            ("ROOM", .left), ("PARTICIPANTS", .right), ("IN", .right), ("OUT", .right),
            ("LOSS", .right), ("RTT", .right), ("JITTER", .right), ("FREEZES", .right),
            ("FROZEN", .right),
        ])
        for room in model.rooms(by: sort) {
            table.add([
                room.room.rawValue, "\(room.participants)", Self.rate(room.bitrateIn),
                Self.rate(room.bitrateOut), Self.percent(room.loss),
                Self.milliseconds(room.roundTripTime), Self.milliseconds(room.jitter),
                "\(room.freezes)", Self.seconds(room.freezeSeconds),
            ])
        }
        return table.text
    }

    /// Formats bits a second, such as `812k` or `2.4M`.
    static func rate(_ bitsPerSecond: Double?) -> String {
        guard let rate = bitsPerSecond, rate.isFinite, rate >= 0, rate < 1e15 else { return "-" }
        for (unit, name) in [(1e9, "G"), (1e6, "M")] where rate >= unit {
            return "\(tenths(rate / unit))\(name)"
        }
        return "\(Int((rate / 1_000).rounded()))k"
    }

    static func percent(_ share: Double?) -> String {
        guard let share, share.isFinite, (0..<1_000).contains(share) else { return "-" }
        return share > 0 && share < 0.1 ? "\(tenths(share * 100)) %" : "\(Int(share * 100)) %"
    }

    private static func milliseconds(_ time: Double?) -> String {
        guard let time, time.isFinite, (0..<1e9).contains(time) else { return "-" }
        return time < 10 ? "\(tenths(time)) ms" : "\(Int(time.rounded())) ms"
    }

    private static func seconds(_ time: Double) -> String {
        time.isFinite && (0..<1e12).contains(time) ? "\(tenths(time)) s" : "-"
    }

    /// Formats with one decimal, without Foundation's formatting.
    private static func tenths(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}

/// A subscription, and the room that it is in.
struct SubscriptionInRoom: Hashable, Sendable {
    var room: RoomID
    var subscription: SubscriptionID
}
