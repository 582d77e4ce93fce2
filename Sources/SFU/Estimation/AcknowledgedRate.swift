/// Estimator of the bitrate acknowledged by one subscriber, a Bayesian average over short windows.
///
/// The window times come from the subscriber's clock. A window far from the present estimate is
/// less certain and moves it less than one that confirms it. The more certain the estimate is, the
/// less a window moves it, so one gap in the feedback does not lower the rate.
struct AcknowledgedRate {
    private static let firstWindow: Int64 = 500_000_000
    private static let window: Int64 = 150_000_000
    private static let doubt = 10.0
    /// Bytes in a window below which a lower sample counts as less certain.
    private static let smallWindow = 2_000
    private static let smallDoubt = 25.0

    private var bytes = 0
    private var windowStart: Int64?
    private var lastArrival: Int64 = 0
    private var variance = 50.0
    /// Estimate in kbit/s; 0 while unknown.
    private var rate = 0.0

    /// Estimate in bits a second; `nil` while unknown.
    var bitsPerSecond: Double? { rate > 0 ? rate * 1000 : nil }

    /// Adds a packet that arrived at `arrived`, in nanoseconds of the subscriber's clock.
    mutating func add(bytes size: Int, arrived: Int64) {
        guard let start = windowStart, arrived &- lastArrival < 2_000_000_000,
            arrived >= start &- Self.window
        else {
            windowStart = arrived
            lastArrival = arrived
            bytes = size
            return
        }
        let length = rate > 0 ? Self.window : Self.firstWindow
        lastArrival = max(lastArrival, arrived)
        if arrived &- start >= length {
            settle(elapsed: arrived &- start)
            windowStart = arrived
            bytes = 0
        }
        bytes &+= size
    }

    mutating func reset() { self = AcknowledgedRate() }

    /// Raises a known estimate to a rate measured by other means, in bits a second.
    mutating func learn(_ bitsPerSecond: Double) {
        guard rate > 0 else { return }
        rate = max(rate, bitsPerSecond / 1000)
        variance = 50
    }

    private mutating func settle(elapsed: Int64) {
        // The packet that ends this window is counted in the next one.
        let sample = Double(bytes) * 8e6 / Double(elapsed)
        guard rate > 0 else {
            rate = max(sample, 1)
            return
        }
        let scale = bytes < Self.smallWindow && sample < rate ? Self.smallDoubt : Self.doubt
        let doubt = scale * abs(rate - sample) / (rate + min(sample, rate))
        let predicted = variance + 5
        let square = doubt * doubt
        rate = max((square * rate + predicted * sample) / (square + predicted), 1)
        variance = square * predicted / (square + predicted)
    }
}
