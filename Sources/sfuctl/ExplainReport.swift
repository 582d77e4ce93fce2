import Contract

extension Report {
    /// Formats an explanation of a subscription's video layer for operators.
    static func explanation(_ found: SubscriptionExplain.Result) -> String {
        var about = Table([
            ("SENT", .left), (found.sent.map(layer) ?? "no video", .left),
        ])
        about.add(["limit", words(found.limit)])
        if let advice = found.advice { about.add(["for more", advice]) }
        about.add(["estimate", found.estimate.map(bitrate) ?? "unknown"])
        about.add(["share", bitrate(found.share)])
        about.add(["preference", preference(found.preference)])
        return [
            about.text, offered(found.offered), turns(found.decisions), freezes(found.freezes),
        ].joined(separator: "\n\n")
    }

    private static func freezes(_ found: SubscriptionFreezes?) -> String {
        guard let found, !found.recent.isEmpty else { return "no freezes" }
        var sums = Table([("FREEZES BY HOP", .left), ("NUMBER", .right), ("SECONDS", .right)])
        for sum in found.hops { sums.add([sum.hop.rawValue, "\(sum.count)", "\(sum.seconds)"]) }
        var table = Table([
            ("TIME (UTC)", .left), ("SECONDS", .right), ("HOP", .left), ("REASON", .left),
        ])
        for freeze in found.recent {
            let length = freeze.ongoing ? "\(freeze.seconds)+" : "\(freeze.seconds)"
            table.add([clock(freeze.time), length, freeze.hop.rawValue, freeze.reason])
        }
        return [found.hops.isEmpty ? "none has ended" : sums.text, table.text]
            .joined(separator: "\n\n")
    }

    private static func offered(_ layers: [LayerInfo]) -> String {
        guard !layers.isEmpty else { return "nothing offered" }
        var table = Table([
            ("OFFERED", .left), ("SIZE", .right), ("FRAMES", .right), ("BITRATE", .right),
            ("", .left),
        ])
        for layer in layers {
            table.add([
                layer.rid ?? "-", "\(layer.width)x\(layer.height)",
                "\(Int(layer.frameRate.rounded()))", bitrate(layer.bitrate),
                layer.active ? "" : "not sent",
            ])
        }
        return table.text
    }

    private static func turns(_ turns: [LayerSwitch]) -> String {
        guard !turns.isEmpty else { return "no turns yet" }
        var table = Table([
            ("TIME (UTC)", .left), ("FROM", .left), ("TO", .left), ("CAUSE", .left),
        ])
        for turn in turns {
            table.add([
                clock(turn.time), turn.previous.map(layer) ?? "no video",
                turn.current.map(layer) ?? "no video", turn.cause.rawValue,
            ])
        }
        return table.text
    }

    private static func layer(_ layer: SentLayer) -> String {
        let size = name(layer.rid, layer.width, layer.height, Int(layer.frameRate.rounded()))
        return "\(size), \(bitrate(layer.bitrate))"
    }

    private static func layer(_ layer: SwitchedLayer) -> String {
        name(layer.rid, layer.width, layer.height, layer.frameRate)
    }

    private static func name(_ rid: String?, _ width: Int, _ height: Int, _ rate: Int) -> String {
        "\(rid.map { "\($0) " } ?? "")\(width)x\(height)@\(rate)"
    }

    private static func bitrate(_ bitsPerSecond: Int) -> String {
        "\((bitsPerSecond + 500) / 1_000) kbit/s"
    }

    private static func preference(_ preference: LayerPreference) -> String {
        var words: [String] = []
        if let size = preference.resolution { words.append("\(size.width)x\(size.height)") }
        if let rate = preference.frameRate { words.append("\(rate) frames a second") }
        if let priority = preference.priority { words.append("priority \(priority)") }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }

    private static func words(_ limit: LayerLimitReason) -> String {
        switch limit {
        case .none: "none: it has the highest layer there is"
        case .preference: "the subscriber's preference"
        case .role: "a role"
        case .bandwidth: "the viewer's bandwidth"
        case .publisher: "what the publisher sends"
        case .muted: "a moderator's mute"
        case .subscriber: "the subscriber's own switch"
        case .codec: "no codec in common"
        case .overload: "the server has too much to do"
        case .approval: "the viewer waits to be let in"
        case .link: "the link between the publisher's node and the viewer's"
        }
    }
}
