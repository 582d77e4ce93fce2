import Foundation

/// Mapping of values to positions along one side of a chart.
struct Axis {
    let title: String
    /// Values at both ends; `start` and `end` are their positions in the drawing.
    let range: ClosedRange<Double>
    let start: Double
    let end: Double
    let isLogarithmic: Bool

    /// Creates an axis that ends at a round number above `values`.
    ///
    /// It starts at 0, or at a power of ten if logarithmic.
    init(
        _ title: String,
        of values: [Double],
        from start: Double,
        to end: Double,
        isLogarithmic: Bool = false
    ) {
        self.title = title
        self.start = start
        self.end = end
        self.isLogarithmic = isLogarithmic
        let good = values.filter { $0.isFinite && (!isLogarithmic || $0 > 0) }
        let most = good.max() ?? 1
        if isLogarithmic {
            let low = floor(log10(good.min() ?? 0.1))
            range = pow(10, low)...pow(10, max(low + 1, ceil(log10(most))))
        } else {
            let step = Self.step(max(most, 1e-9))
            range = 0...(step * ceil(max(most, 1e-9) * 1.02 / step))
        }
    }

    func place(_ value: Double) -> Double {
        let share =
            isLogarithmic
            ? (log10(max(value, range.lowerBound)) - log10(range.lowerBound))
                / (log10(range.upperBound) - log10(range.lowerBound))
            : (value - range.lowerBound) / (range.upperBound - range.lowerBound)
        return start + (end - start) * min(1, max(0, share))
    }

    /// Values that get a label.
    var ticks: [Double] {
        if isLogarithmic {
            let exponents =
                Int(log10(range.lowerBound).rounded())...Int(log10(range.upperBound).rounded())
            return exponents.map { pow(10, Double($0)) }
        }
        let step = Self.step(range.upperBound)
        return Array(stride(from: 0, through: range.upperBound * 1.001, by: step))
    }

    static func label(_ value: Double) -> String {
        if value >= 1_000 { return String(format: "%.0f", value) }
        return String(format: "%g", (value * 1_000).rounded() / 1_000)
    }

    /// Returns a round step that gives four to eight ticks.
    private static func step(_ most: Double) -> Double {
        let power = pow(10, floor(log10(most)))
        let lead = most / power
        return power * (lead < 1.5 ? 0.2 : lead < 4 ? 0.5 : lead < 8 ? 1 : 2)
    }
}
