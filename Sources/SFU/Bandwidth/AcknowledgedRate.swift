/// What the viewer really gets: bits a second over short windows of its own clock, each weighed
/// by how far it is from what was known.
///
/// A window that says something else moves the rate less than one that confirms it, and the more
/// so the more certain the rate has become; so one gap in the feedback is no drop of the rate.
struct AcknowledgedRate {
    private static let firstWindow: Int64 = 500_000_000
    private static let window: Int64 = 150_000_000
    private static let doubt = 10.0
    /// Windows of fewer bytes tell less.
    private static let smallWindow = 2_000
    private static let smallDoubt = 25.0

    private var bytes = 0
    private var windowStart: Int64?
    private var lastArrival: Int64 = 0
    private var variance = 50.0
    /// In kbit/s; 0 while nothing is known.
    private var rate = 0.0

    /// Bits a second, once known.
    var bitsPerSecond: Double? { rate > 0 ? rate * 1000 : nil }

    /// Adds a packet that came at `arrived` (remote nanoseconds).
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

    /// Takes a rate that is known otherwise.
    mutating func learn(_ bitsPerSecond: Double) {
        guard rate > 0 else { return }
        rate = max(rate, bitsPerSecond / 1000)
        variance = 50
    }

    private mutating func settle(elapsed: Int64) {
        // What came at the very end opens the next window.
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
