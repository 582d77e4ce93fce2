import RTP

/// What each layer of one encoding is: its size, and its rates with all that it needs.
///
/// Measured over windows of about a second; a layer of which nothing came in a whole window is
/// no longer there. What it took when it was there last is kept: an encoder that starts anew sends
/// little at first, and would look cheap.
struct LayerMeter: ~Copyable {
    struct Count: BitwiseCopyable {
        var bytes: UInt64 = 0
        var frames = 0
        var bitrate = 0
        var frameRate = 0.0
        /// It has been there for a whole window.
        var isMeasured = false
        /// The most that it took of late, in bits a second; 0 where that was never measured.
        var usual = 0
        /// What its sender says that it is to take, in bits a second; 0 where nothing was said.
        var stated = 0
        /// Frames a second, likewise.
        var statedFrames: UInt8 = 0
        /// Windows that it has been there, up to where its encoder is in its stride.
        var windows = 0

        var isRamping: Bool { windows < LayerMeter.rampWindows }
    }

    /// Pixels of one spatial layer; 0 while unknown.
    struct Size: Equatable, BitwiseCopyable {
        var width: UInt16 = 0
        var height: UInt16 = 0
    }

    /// How long something has to come before a rate can be guessed.
    private static let leastNanoseconds: Int64 = 200_000_000
    private static let windowNanoseconds: Int64 = 900_000_000
    /// Windows in which an encoder comes to its rate.
    static let rampWindows = 3
    /// Of the most that a layer took it has so much less to take after each window, as a divisor.
    private static let forgetting = 8
    /// No sender can say more than this, in bits a second.
    private static let mostStated = 50_000_000

    private var counts: Ring<Count>
    private var sizes = Ring<Size>(capacity: 8, filledWith: Size())
    private var windowStart: Instant?
    /// It came, or came back, in this window.
    private var isBack = false
    /// Layers of which something came in this window.
    private var seen = LayerPoints.none
    /// Layers that are there.
    private(set) var live = LayerPoints.none

    init(isEnabled: Bool) {
        counts = Ring(capacity: isEnabled ? LayerPoint.count : 1, filledWith: Count())
    }

    /// The highest spatial and the highest temporal layer that are there.
    var highest: LayerPoint {
        var temporal: UInt8 = 0
        while temporal < 3, live.rawValue & LayerPoints(from: 0, temporal + 1).rawValue != 0 {
            temporal += 1
        }
        let spatial = max(0, 31 - live.rawValue.leadingZeroBitCount) / 4
        return LayerPoint(spatial: UInt8(spatial), temporal: temporal)
    }

    /// The size of a spatial layer.
    func size(of spatial: UInt8) -> Size { sizes[Int(min(spatial, 7))] }

    /// Notes a size; returns whether it is another than before.
    mutating func set(_ size: Size, of spatial: UInt8) -> Bool {
        guard size != sizes[Int(min(spatial, 7))] else { return false }
        sizes[Int(min(spatial, 7))] = size
        return true
    }

    /// Counts one packet; returns whether its layer is new.
    mutating func receive(_ info: borrowing PacketInfo, bytes: Int) -> Bool {
        let layer = LayerPoint(index: Int(info.layer))
        let isNew = !live.contains(layer)
        if isNew {
            // A window that began before would make little of it.
            if live == .none { begin(at: info.arrival) }
            live.formUnion(LayerPoints(layer))
        }
        seen.formUnion(LayerPoints(layer))
        var points = info.points.intersection(live).rawValue
        while points != 0 {
            let index = points.trailingZeroBitCount
            counts[index].bytes &+= UInt64(bytes)
            if info.marks.contains(LayerPoint(index: index)) { counts[index].frames &+= 1 }
            points &= points &- 1
        }
        return isNew
    }

    private mutating func begin(at now: Instant) {
        windowStart = now
        isBack = true
        for index in 0..<counts.capacity {
            counts[index].bytes = 0
            counts[index].frames = 0
            counts[index].isMeasured = false
            counts[index].windows = 0
        }
    }

    /// Closes the window if it is long enough; returns whether it did.
    mutating func measure(at now: Instant) -> Bool {
        guard let start = windowStart else { return false }
        let elapsed = now.nanoseconds(since: start)
        guard elapsed >= Self.windowNanoseconds else { return false }
        var points = live.rawValue
        while points != 0 {
            let index = points.trailingZeroBitCount
            close(index, isThere: seen.contains(LayerPoint(index: index)), after: elapsed)
            points &= points &- 1
        }
        live = seen
        seen = .none
        windowStart = now
        isBack = false
        return true
    }

    private mutating func close(_ index: Int, isThere: Bool, after elapsed: Int64) {
        let before = counts[index]
        let rate = rate(of: index, over: elapsed)
        // One keyframe makes no other layer of it.
        let steady = before.isMeasured ? (before.bitrate + rate.bitrate) / 2 : rate.bitrate
        let kept =
            before.isRamping ? before.usual : before.usual - before.usual / Self.forgetting
        counts[index] = Count(
            bitrate: rate.bitrate,
            frameRate: rate.frameRate,
            isMeasured: isThere,
            usual: isThere ? max(kept, steady) : before.usual,
            stated: before.stated,
            statedFrames: before.statedFrames,
            windows: isThere ? min(before.windows + 1, Self.rampWindows) : 0
        )
    }

    /// What a layer takes, with all that it needs, once its encoder is in its stride: bits a
    /// second, 0 where nobody knows.
    ///
    /// What the sender says counts only until it has been measured for a while.
    func usualRate(of layer: LayerPoint) -> Int {
        let count = counts[layer.index]
        return count.isRamping ? max(count.usual, count.stated) : count.usual
    }

    /// Layers that may be followed: of an encoding that has just come back all that it had, for
    /// they will come.
    var offered: LayerPoints { isBack ? live.union(known) : live }

    /// Layers that have been measured, whether they are there or not.
    var known: LayerPoints {
        var known = LayerPoints.none
        for index in 0..<counts.capacity where counts[index].usual > 0 {
            known.formUnion(LayerPoints(LayerPoint(index: index)))
        }
        return known
    }

    /// Takes down what the sender says that a layer is to take, in bits and frames a second.
    mutating func state(_ bitsPerSecond: Int, _ framesPerSecond: UInt8, of layer: LayerPoint) {
        guard counts.capacity > layer.index else { return }
        counts[layer.index].stated = min(max(bitsPerSecond, 0), Self.mostStated)
        counts[layer.index].statedFrames = framesPerSecond
    }

    /// The sender says something new.
    mutating func forgetStated() {
        for index in 0..<counts.capacity {
            counts[index].stated = 0
            counts[index].statedFrames = 0
        }
    }

    /// Bits and frames a second up to a layer; 0 while nobody knows.
    func rate(of layer: LayerPoint, at now: Instant) -> (bitrate: Int, frameRate: Double) {
        let count = counts[layer.index]
        if count.isMeasured { return (count.bitrate, count.frameRate) }
        let stated = (bitrate: 0, frameRate: Double(count.statedFrames))
        guard let windowStart else { return stated }
        let elapsed = now.nanoseconds(since: windowStart)
        return elapsed >= Self.leastNanoseconds ? rate(of: layer.index, over: elapsed) : stated
    }

    private func rate(of index: Int, over elapsed: Int64) -> (bitrate: Int, frameRate: Double) {
        let count = counts[index]
        let seconds = Double(max(elapsed, 1)) / 1_000_000_000
        let bits = min(Double(count.bytes) * 8 / seconds, 1e12)
        return (Int(saturating: bits), Double(count.frames) / seconds)
    }

    /// Forgets all layers but not their sizes.
    mutating func removeAll() {
        for index in 0..<counts.capacity { counts[index] = Count() }
        live = .none
        seen = .none
        windowStart = nil
    }
}
