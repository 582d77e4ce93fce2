/// A text table whose columns are as wide as their content.
struct Table {
    enum Alignment { case left, right }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []

    init(_ columns: [(title: String, alignment: Alignment)]) { self.columns = columns }

    /// Adds a row; `cells` has one cell for each column.
    mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count, "a row has a cell for each column")
        rows.append(cells.map(Self.printable))
    }

    var text: String {
        let lines = [columns.map(\.title)] + rows
        let widths = columns.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            var text = ""
            for (column, cell) in line.enumerated() {
                if column > 0 { text += "  " }
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                text += columns[column].alignment == .left ? cell + padding : padding + cell
            }
            while text.last == " " { text.removeLast() }
            return text
        }
        .joined(separator: "\n")
    }

    /// Replaces control characters with `?`, as names come from untrusted users.
    static func printable(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
                shown.append("?")
            default: shown.append(scalar)
            }
        }
        return String(shown)
    }
}
