/// A chart with a title, two axes and a legend.
struct Chart {
    /// Values of one system.
    struct Series {
        var name: String
        var color: String
        var isDashed = false
        var points: [(x: Double, y: Double)]
    }

    /// A line across the chart that explains a value.
    struct Mark {
        var value: Double
        var text: String
        var isUpright = false
    }

    var title: String
    var subtitle: String
    var xTitle: String
    var yTitle: String
    var series: [Series]
    var marks: [Mark] = []
    var isLogarithmic = false

    private static let width = 860.0
    private static let height = 470.0
    private static let left = 78.0
    private static let right = 830.0
    private static let top = 96.0
    private static let bottom = 400.0

    /// The chart as lines through points.
    var lines: String {
        let level = marks.filter { !$0.isUpright }.map(\.value)
        let upright = marks.filter(\.isUpright).map(\.value)
        let xs = series.flatMap { $0.points.map(\.x) } + upright
        let ys = series.flatMap { $0.points.map(\.y) } + level
        let x = Axis(xTitle, of: xs, from: Self.left, to: Self.right)
        let y = Axis(
            yTitle,
            of: ys,
            from: Self.bottom,
            to: Self.top,
            isLogarithmic: isLogarithmic
        )
        var svg = frame(y)
        for tick in x.ticks {
            svg.text(Axis.label(tick), at: (x.place(tick), Self.bottom + 20), anchor: .middle)
        }
        for mark in marks {
            if mark.isUpright {
                let place = x.place(mark.value)
                svg.line(
                    from: (place, Self.bottom),
                    to: (place, Self.top),
                    color: "#444",
                    dashed: true
                )
                svg.text(mark.text, at: (place - 6, Self.top + 14), anchor: .end, size: 12)
            } else {
                let place = y.place(mark.value)
                svg.line(
                    from: (Self.left, place),
                    to: (Self.right, place),
                    color: "#444",
                    dashed: true
                )
                svg.text(mark.text, at: (Self.right, place - 5), anchor: .end, size: 12)
            }
        }
        for line in series {
            let places = line.points.map { (x.place($0.x), y.place($0.y)) }
            svg.path(places, color: line.color, dashed: line.isDashed)
            for place in places { svg.dot(place, color: line.color) }
        }
        legend(&svg)
        return svg.file
    }

    /// Draws the chart as grouped bars; `x` of a point is the group's index.
    func bars(_ groups: [String]) -> String {
        let ys = series.flatMap { $0.points.map(\.y) }
        let y = Axis(yTitle, of: ys, from: Self.bottom, to: Self.top)
        var svg = frame(y)
        let room = (Self.right - Self.left) / Double(max(1, groups.count))
        let width = min(46, room * 0.8 / Double(max(1, series.count)))
        for (group, name) in groups.enumerated() {
            let middle = Self.left + room * (Double(group) + 0.5)
            svg.text(name, at: (middle, Self.bottom + 20), anchor: .middle)
            let present = series.filter { $0.points.contains { Int($0.x) == group } }
            let start = middle - width * Double(present.count) / 2
            for (index, line) in present.enumerated() {
                guard let point = line.points.first(where: { Int($0.x) == group }) else { continue }
                let top = y.place(point.y)
                let x = start + width * Double(index)
                svg.bar(
                    x: x + 1,
                    y: top,
                    width: width - 2,
                    height: Self.bottom - top,
                    color: line.color
                )
                svg.text(
                    Axis.label((point.y * 100).rounded() / 100),
                    at: (x + width / 2, top - 4),
                    anchor: .middle,
                    size: 11
                )
            }
        }
        legend(&svg)
        return svg.file
    }

    /// Draws titles, grid and the labels of the vertical axis.
    private func frame(_ y: Axis) -> SVG {
        var svg = SVG(width: Self.width, height: Self.height)
        svg.text(title, at: (Self.left, 30), size: 17, isBold: true)
        svg.text(subtitle, at: (Self.left, 50), size: 12)
        for tick in y.ticks {
            let place = y.place(tick)
            svg.line(from: (Self.left, place), to: (Self.right, place), color: "#ddd")
            svg.text(Axis.label(tick), at: (Self.left - 8, place + 4), anchor: .end)
        }
        svg.line(
            from: (Self.left, Self.bottom),
            to: (Self.right, Self.bottom),
            color: "#222",
            width: 1.5
        )
        svg.text(
            xTitle,
            at: ((Self.left + Self.right) / 2, Self.bottom + 48),
            anchor: .middle,
            size: 14
        )
        svg.text(
            y.title,
            at: (22, (Self.top + Self.bottom) / 2),
            anchor: .middle,
            size: 14,
            isUpright: true
        )
        return svg
    }

    private func legend(_ svg: inout SVG) {
        var x = Self.left
        for line in series {
            svg.line(
                from: (x, 72),
                to: (x + 24, 72),
                color: line.color,
                width: 5,
                dashed: line.isDashed
            )
            svg.text(line.name, at: (x + 30, 76))
            x += 56 + 7.5 * Double(line.name.count)
        }
    }
}
