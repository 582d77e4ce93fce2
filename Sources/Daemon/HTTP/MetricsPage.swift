import ControlPlane
import WorkerInterface

/// Page of metrics in Prometheus' text format (version 0.0.4).
struct MetricsPage {
    enum Kind: String { case counter, gauge, histogram }

    private(set) var text = ""

    /// Adds a metric without labels.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        add(name, kind, help) { [("", value)] }
    }

    /// Adds a metric with one value for each label set.
    mutating func add(
        _ name: String,
        _ kind: Kind,
        _ help: String,
        _ rows: () -> [(String, Double)]
    ) {
        declare(name, kind, help)
        for (labels, value) in rows() { addRow(name, labels, value) }
    }

    /// Adds a counter with one value for each reason, in the order of the reasons.
    mutating func add(
        _ name: String,
        _ help: String,
        _ reasons: ReasonCounts,
        label: String = "reason"
    ) {
        add(name, .counter, help) {
            reasons.counts.sorted { $0.key < $1.key }.map {
                ("\(label)=\"\(Self.escaped($0.key))\"", Double($0.value))
            }
        }
    }

    /// Adds a histogram of times, one for each label set.
    mutating func addHistogram(
        _ name: String,
        _ help: String,
        _ histograms: [(labels: String, times: ForwardingTimes)]
    ) {
        declare(name, .histogram, help)
        for (labels, times) in histograms {
            addBuckets(
                name,
                labels,
                bounds: ForwardingTimes.bounds.map { Double($0) / 1e9 },
                counts: times.counts,
                sum: Double(times.totalNanoseconds) / 1e9
            )
        }
    }

    /// Adds a histogram, one for each label set.
    mutating func addHistogram(
        _ name: String,
        _ help: String,
        _ histograms: [(labels: String, samples: Histogram)]
    ) {
        declare(name, .histogram, help)
        for (labels, samples) in histograms {
            addBuckets(
                name,
                labels,
                bounds: samples.scale.bounds,
                counts: samples.counts,
                sum: samples.sum
            )
        }
    }

    private mutating func addBuckets(
        _ name: String,
        _ labels: String,
        bounds: [Double],
        counts: [UInt64],
        sum: Double
    ) {
        var below: UInt64 = 0
        let prefix = labels.isEmpty ? "" : "\(labels),"
        for (bound, count) in zip(bounds, counts) {
            below &+= count
            addRow("\(name)_bucket", "\(prefix)le=\"\(bound)\"", Double(below))
        }
        let all = Double(counts.reduce(0, &+))
        addRow("\(name)_bucket", "\(prefix)le=\"+Inf\"", all)
        addRow("\(name)_sum", labels, sum)
        addRow("\(name)_count", labels, all)
    }

    private mutating func declare(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    private mutating func addRow(_ name: String, _ labels: String, _ value: Double) {
        text += labels.isEmpty ? name : "\(name){\(labels)}"
        text += " \(Int64(exactly: value).map(String.init) ?? "\(value)")\n"
    }

    /// Escapes a label's value: some reasons come from other processes.
    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            .replacing("\n", with: "\\n")
    }
}
