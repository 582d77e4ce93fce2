import Contract

extension Report {
    /// Formats the nodes of a cluster, one a line.
    static func nodes(_ result: NodeList.Result) -> String {
        guard let registry = result.registry else { return "no cluster" }
        var table = Table([
            ("NODE", .left), ("STATE", .left), ("REGION", .left), ("LOAD", .right),
            ("ROOMS", .right), ("PEOPLE", .right), ("ADDRESS", .left), ("BEAT", .right),
            ("LINK", .left), ("RTT", .right),
        ])
        for node in result.nodes {
            let load = Int((min(max(node.load, 0), 1) * 100).rounded())
            table.add([
                node.node, node.state.rawValue, node.region ?? "-", "\(load)%", "\(node.rooms)",
                "\(node.participants)", node.address, "\(tenths(node.beatAge)) s",
                node.link.rawValue,
                node.roundTripMilliseconds.map { "\(tenths($0)) ms" } ?? "-",
            ])
        }
        switch registry {
        case .reached: return table.text
        case .away: return table.text + "\n\nregistry away: no new rooms"
        }
    }

    private static func tenths(_ number: Double) -> String {
        "\((number * 10).rounded() / 10)"
    }
}
