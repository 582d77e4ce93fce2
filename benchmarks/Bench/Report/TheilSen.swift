/// Theil-Sen estimator: a slope robust to outliers, the median of the slopes of all pairs.
///
/// Its 95 % interval is by ranks (Sen 1968), so it assumes no distribution of the deviations.
struct TheilSen {
    let median: Double
    let low: Double
    let high: Double

    /// Computes the slope; returns `nil` for fewer than ten points.
    ///
    /// No two points may have the same `x`.
    init?(_ points: some Sequence<(x: Double, y: Double)>) {
        let points = Array(points)
        guard points.count >= 10 else { return nil }
        var slopes: [Double] = []
        for (index, one) in points.enumerated() {
            for other in points[(index + 1)...] {
                slopes.append((other.y - one.y) / (other.x - one.x))
            }
        }
        slopes.sort()
        let count = Double(points.count)
        // Standard deviation of Kendall's S without a slope.
        let deviation = (count * (count - 1) * (2 * count + 5) / 18).squareRoot()
        let beyond = Int((Double(slopes.count) - 1.96 * deviation) / 2)
        median = (slopes[(slopes.count - 1) / 2] + slopes[slopes.count / 2]) / 2
        low = slopes[max(0, beyond)]
        high = slopes[min(slopes.count - 1, slopes.count - 1 - beyond)]
    }
}
