internal import RTP

/// What each layer of one encoding is: its size, and its rates with all that it needs.
///
/// Measured over windows of about a second; a layer of which nothing came in a whole window is
/// no longer there.
struct LayerMeter: ~Copyable {
    struct Count: BitwiseCopyable {
        var bytes: UInt64 = 0
        var frames = 0
        var bitrate = 0
        var frameRate = 0.0
        /// It has been there for a whole window.
        var isMeasured = false
    }

    /// Pixels of one spatial layer; 0 while unknown.
    struct Size: Equatable, BitwiseCopyable {
        var width: UInt16 = 0
        var height: UInt16 = 0
    }

    /// How long something has to come before a rate can be guessed.
    private static let leastNanoseconds: Int64 = 200_000_000
    private static let windowNanoseconds: Int64 = 900_000_000

    private var counts: Ring<Count>
    private var sizes = Ring<Size>(capacity: 8, filledWith: Size())
    private var windowStart: Instant?
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
        if isNew { live.formUnion(LayerPoints(layer)) }
        seen.formUnion(LayerPoints(layer))
        if windowStart == nil { windowStart = info.arrival }
        var points = info.points.intersection(live).rawValue
        while points != 0 {
            let index = points.trailingZeroBitCount
            counts[index].bytes &+= UInt64(bytes)
            if info.marks.contains(LayerPoint(index: index)) { counts[index].frames &+= 1 }
            points &= points &- 1
        }
        return isNew
    }

    /// Closes the window if it is long enough; returns whether it did.
    mutating func measure(at now: Instant) -> Bool {
        guard let start = windowStart else { return false }
        let elapsed = now.nanoseconds(since: start)
        guard elapsed >= Self.windowNanoseconds else { return false }
        var points = live.rawValue
        while points != 0 {
            let index = points.trailingZeroBitCount
            let rate = rate(of: index, over: elapsed)
            counts[index] = Count(
                bitrate: rate.bitrate,
                frameRate: rate.frameRate,
                isMeasured: seen.contains(LayerPoint(index: index))
            )
            points &= points &- 1
        }
        live = seen
        seen = .none
        windowStart = now
        return true
    }

    /// Bits and frames a second up to a layer; 0 while nobody knows.
    func rate(of layer: LayerPoint, at now: Instant) -> (bitrate: Int, frameRate: Double) {
        let count = counts[layer.index]
        if count.isMeasured { return (count.bitrate, count.frameRate) }
        guard let windowStart else { return (0, 0) }
        let elapsed = now.nanoseconds(since: windowStart)
        return elapsed >= Self.leastNanoseconds ? rate(of: layer.index, over: elapsed) : (0, 0)
    }

    private func rate(of index: Int, over elapsed: Int64) -> (bitrate: Int, frameRate: Double) {
        let count = counts[index]
        let seconds = Double(max(elapsed, 1)) / 1_000_000_000
        let bits = min(Double(count.bytes) * 8 / seconds, 1e12)
        return (Int(bits), Double(count.frames) / seconds)
    }

    /// Forgets all layers but not their sizes.
    mutating func removeAll() {
        for index in 0..<counts.capacity { counts[index] = Count() }
        live = .none
        seen = .none
        windowStart = nil
    }
}
