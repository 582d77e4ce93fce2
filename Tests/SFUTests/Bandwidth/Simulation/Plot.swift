import Foundation

/// Plots of simulations: rates and capacity above, the queue below.
enum Plot {
    private static let width = 760.0
    private static let left = 50.0
    private static let upper = (top: 26.0, height: 190.0)
    private static let lower = (top: 246.0, height: 84.0)
    private static let colours = [
        "#1668b8", "#c4501b", "#2a8a3e", "#8a3ea8", "#b8860b",
    ]

    /// Writes a plot into the folder that `SFUD_PLOTS` names, for the first seed only.
    static func write(_ network: SimulatedNetwork, seed: UInt64) {
        guard seed == 1, let folder = ProcessInfo.processInfo.environment["SFUD_PLOTS"] else {
            return
        }
        let url = URL(filePath: folder).appending(path: "\(network.name).svg")
        try? drawing(of: network).write(to: url, atomically: true, encoding: .utf8)
    }

    static func drawing(of network: SimulatedNetwork) -> String {
        // Some two hundred points are enough for the eye.
        let group = max(5, network.samples.count / 200)
        let points = stride(from: group - 1, to: network.samples.count, by: group).map { last in
            Array(network.samples[(last - group + 1)...last])
        }
        let end = network.samples.last?.second ?? 1
        var most = network.samples.map(\.capacity).max() ?? 1
        for part in points {
            for flow in network.flows.indices {
                let mean: Double = part.reduce(0.0) { $0 + $1.rates[flow] } / Double(group)
                most = max(most, mean)
            }
        }
        let deepest = max(network.samples.map(\.queueMilliseconds).max() ?? 1, 50)
        var text = """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(width)) 350" \
            font-family="sans-serif" font-size="11">
            <rect width="100%" height="100%" fill="#fff"/>
            <text x="\(Int(left))" y="16">\(network.name): capacity (grey), received (solid), \
            estimate (thin); below, the queue</text>

            """
        func line(
            _ values: [Double],
            _ area: (top: Double, height: Double),
            scale: Double,
            style: String
        ) {
            let path = zip(points, values).map { part, value in
                let x: Double = left + (part[part.count - 1].second / end) * (width - left - 10)
                let y: Double = area.top + area.height * (1 - min(value / scale, 1))
                return "\(short(x)),\(short(y))"
            }
            text += "<polyline fill=\"none\" \(style) points=\"\(path.joined(separator: " "))\"/>\n"
        }
        line(points.map { $0[0].capacity }, upper, scale: most, style: "stroke=\"#bbb\"")
        // Many downloads would clutter the plot: they are left out.
        for flow in network.flows.indices where flow < 5 && (flow < 2 || network.flows.count < 6) {
            let colour = "stroke=\"\(colours[flow % colours.count])\""
            let rates: [Double] = points.map { part in
                part.reduce(0.0) { $0 + $1.rates[flow] } / Double(group)
            }
            line(rates, upper, scale: most, style: "\(colour) stroke-width=\"1.5\"")
            guard network.flows[flow] is MediaFlow else { continue }
            let estimates = points.map { $0[group - 1].estimates[flow] }
            line(estimates, upper, scale: most, style: "\(colour) stroke-width=\"0.6\"")
        }
        let queue = points.map { part in part.map(\.queueMilliseconds).max() ?? 0 }
        line(queue, lower, scale: deepest, style: "stroke=\"#a22\"")
        text += label("\(Int(most / 1000)) kbit/s", y: upper.top + 8)
        text += label("\(Int(deepest)) ms", y: lower.top + 8)
        text += label("0", y: upper.top + upper.height)
        text += label("0", y: lower.top + lower.height)
        for second in stride(from: 0, through: end, by: end > 150 ? 30 : 10) {
            let x: Double = left + second / end * (width - left - 10)
            text += "<text x=\"\(short(x))\" y=\"345\" text-anchor=\"middle\">"
            text += "\(Int(second)) s</text>\n"
        }
        return text + "</svg>\n"
    }

    private static func label(_ text: String, y: Double) -> String {
        "<text x=\"2\" y=\"\(short(y))\" font-size=\"9\">\(text)</text>\n"
    }

    private static func short(_ value: Double) -> String { String(format: "%.0f", value) }
}
