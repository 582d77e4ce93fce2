import Foundation

/// A drawing as text, with the subset of SVG 1.1 that charts need.
struct SVG {
    let width: Double
    let height: Double
    private var body = ""

    init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }

    /// Position of a text relative to its point.
    enum Anchor: String { case start, middle, end }

    mutating func line(
        from: (Double, Double),
        to: (Double, Double),
        color: String,
        width: Double = 1,
        dashed: Bool = false
    ) {
        let dashes = dashed ? " stroke-dasharray=\"6 4\"" : ""
        body += "<line x1=\"\(Self.n(from.0))\" y1=\"\(Self.n(from.1))\" x2=\"\(Self.n(to.0))\" "
        body += "y2=\"\(Self.n(to.1))\" stroke=\"\(color)\" stroke-width=\"\(width)\"\(dashes)/>\n"
    }

    mutating func path(_ points: [(Double, Double)], color: String, dashed: Bool) {
        let list = points.map { "\(Self.n($0.0)),\(Self.n($0.1))" }.joined(separator: " ")
        let dashes = dashed ? " stroke-dasharray=\"7 5\"" : ""
        body += "<polyline points=\"\(list)\" fill=\"none\" stroke=\"\(color)\" "
        body += "stroke-width=\"2.5\" stroke-linejoin=\"round\"\(dashes)/>\n"
    }

    mutating func dot(_ point: (Double, Double), color: String) {
        body += "<circle cx=\"\(Self.n(point.0))\" cy=\"\(Self.n(point.1))\" r=\"3.5\" "
        body += "fill=\"\(color)\"/>\n"
    }

    mutating func bar(x: Double, y: Double, width: Double, height: Double, color: String) {
        body += "<rect x=\"\(Self.n(x))\" y=\"\(Self.n(y))\" width=\"\(Self.n(width))\" "
        body += "height=\"\(Self.n(max(0, height)))\" fill=\"\(color)\"/>\n"
    }

    mutating func text(
        _ text: String,
        at point: (Double, Double),
        anchor: Anchor = .start,
        size: Double = 13,
        isBold: Bool = false,
        isUpright: Bool = false
    ) {
        let (x, y) = (Self.n(point.0), Self.n(point.1))
        let turn = isUpright ? " transform=\"rotate(-90 \(x) \(y))\"" : ""
        let weight = isBold ? " font-weight=\"600\"" : ""
        body += "<text x=\"\(x)\" y=\"\(y)\" text-anchor=\"\(anchor.rawValue)\" "
        body += "font-size=\"\(size)\"\(weight)\(turn)>\(Self.escaped(text))</text>\n"
    }

    /// The complete file.
    var file: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.n(width)) \(Self.n(height))" \
        width="\(Self.n(width))" height="\(Self.n(height))" \
        font-family="system-ui, 'DejaVu Sans', sans-serif" fill="#222">
        <rect width="100%" height="100%" fill="#fff"/>
        \(body)</svg>

        """
    }

    private static func n(_ number: Double) -> String { String(format: "%.1f", number) }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }
}
