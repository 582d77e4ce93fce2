/// The slope of points that some of them do not obey: the median of those of all pairs.
///
/// Its 95 % interval is by ranks (Sen 1968), so nothing is supposed of how far points stray.
struct TheilSen {
    let median: Double
    let low: Double
    let high: Double

    /// `nil` for fewer than ten points, of which no two may have the same `x`.
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
        // Of Kendall's S where there is no slope.
        let deviation = (count * (count - 1) * (2 * count + 5) / 18).squareRoot()
        let beyond = Int((Double(slopes.count) - 1.96 * deviation) / 2)
        median = (slopes[(slopes.count - 1) / 2] + slopes[slopes.count / 2]) / 2
        low = slopes[max(0, beyond)]
        high = slopes[min(slopes.count - 1, slopes.count - 1 - beyond)]
    }
}
