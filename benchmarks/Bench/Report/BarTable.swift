/// The bars in words, as `make bench` prints them last.
struct BarTable {
    private let rows: [TargetRow]

    /// Takes those of the rows that have a bar.
    init(_ rows: [TargetRow]) { self.rows = rows.filter { $0.isMet != nil } }

    /// A line for each bar, and one that counts them; empty if there are none.
    var text: String {
        guard !rows.isEmpty else { return "" }
        let reached = rows.count { $0.isMet == true }
        let lines = rows.map { row in
            let others = row.others.sorted { $0.key < $1.key }.map { "\($0): \($1)" }
            let compared = others.isEmpty ? "" : "; " + others.joined(separator: "; ")
            return """
                \(row.isMet == true ? "reached" : "MISSED ")  \(row.scenario.padded(12)) \
                \(row.figure): \(row.value)\(compared). To reach: \(row.bar)
                """
        }
        return lines.joined(separator: "\n") + "\n\(reached) of \(rows.count) bars reached"
    }
}
