import RTP

/// Meter of one encoding's layers: resolutions, and the rates of each layer with all that it
/// depends on.
///
/// Rates are measured over windows of about a second. A layer without packets in a whole window is
/// no longer live. Its last rate is kept, because an encoder that restarts sends little at first
/// and would look cheap.
struct LayerMeter: ~Copyable {
    struct Count: BitwiseCopyable {
        var bytes: UInt64 = 0
        var frames = 0
        var bitrate = 0
        var frameRate = 0.0
        /// Whether the rates cover a whole window.
        var isMeasured = false
        /// Recent maximum of the bitrate, in bits a second; 0 if never measured.
        var recentMaximum = 0
        /// Bitrate announced by the sender, in bits a second; 0 if none.
        var announced = 0
        /// Frame rate announced by the sender, in frames a second.
        var announcedFrameRate: UInt8 = 0
        /// Windows that it has been live, counted up to the end of the encoder's ramp-up.
        var windows = 0

        var isRamping: Bool { windows < LayerMeter.rampWindows }
    }

    /// Shortest time from which a rate can be estimated.
    private static let leastNanoseconds: Int64 = 200_000_000
    private static let windowNanoseconds: Int64 = 900_000_000
    /// Windows of an encoder's ramp-up.
    static let rampWindows = 3
    /// Divisor of the decay of the recent maximum after each window.
    private static let forgetting = 8
    /// Highest bitrate that a sender can announce, in bits a second.
    private static let maximumAnnounced = 50_000_000

    private var counts: Ring<Count>
    private var sizes = Ring<LayerSize>(capacity: 8, filledWith: LayerSize())
    private var windowStart: Instant?
    /// Whether the encoding started or resumed in this window.
    private var isBack = false
    /// Layers with packets in this window.
    private var seen = LayerPoints.none
    /// Layers that are live.
    private(set) var live = LayerPoints.none

    init(isEnabled: Bool) {
        counts = Ring(capacity: isEnabled ? LayerPoint.count : 1, filledWith: Count())
    }

    /// Highest spatial and highest temporal layer that are live.
    var highest: LayerPoint {
        var temporal: UInt8 = 0
        while temporal < 3, live.rawValue & LayerPoints(from: 0, temporal + 1).rawValue != 0 {
            temporal += 1
        }
        let spatial = max(0, 31 - live.rawValue.leadingZeroBitCount) / 4
        return LayerPoint(spatial: UInt8(spatial), temporal: temporal)
    }

    /// Returns the resolution of a spatial layer.
    func size(of spatial: UInt8) -> LayerSize { sizes[Int(min(spatial, 7))] }

    /// Stores a resolution; returns whether it has changed.
    mutating func set(_ size: LayerSize, of spatial: UInt8) -> Bool {
        guard size != sizes[Int(min(spatial, 7))] else { return false }
        sizes[Int(min(spatial, 7))] = size
        return true
    }

    /// Counts one packet; returns whether its layer is new.
    mutating func receive(_ info: borrowing PacketInfo, bytes: Int) -> Bool {
        let layer = LayerPoint(index: Int(info.layer))
        let isNew = !live.contains(layer)
        if isNew {
            // A window that began before would underestimate the rate.
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
        // The mean of two windows, since a single keyframe does not change a layer's rate.
        let steady = before.isMeasured ? (before.bitrate + rate.bitrate) / 2 : rate.bitrate
        let kept =
            before.isRamping
            ? before.recentMaximum : before.recentMaximum - before.recentMaximum / Self.forgetting
        counts[index] = Count(
            bitrate: rate.bitrate,
            frameRate: rate.frameRate,
            isMeasured: isThere,
            recentMaximum: isThere ? max(kept, steady) : before.recentMaximum,
            announced: before.announced,
            announcedFrameRate: before.announcedFrameRate,
            windows: isThere ? min(before.windows + 1, Self.rampWindows) : 0
        )
    }

    /// Returns the bitrate of a layer with all that it depends on once its encoder has ramped up,
    /// in bits a second; 0 if unknown.
    ///
    /// The sender's announcement counts only until the ramp-up has been measured.
    func expectedBitrate(of layer: LayerPoint) -> Int {
        let count = counts[layer.index]
        return count.isRamping ? max(count.recentMaximum, count.announced) : count.recentMaximum
    }

    /// Layers that may be selected.
    ///
    /// Just after an encoding has resumed, these are all layers that it had before, because they
    /// are expected to return.
    var offered: LayerPoints { isBack ? live.union(known) : live }

    /// Layers that have been measured, whether live or not.
    var known: LayerPoints {
        var known = LayerPoints.none
        for index in 0..<counts.capacity where counts[index].recentMaximum > 0 {
            known.formUnion(LayerPoints(LayerPoint(index: index)))
        }
        return known
    }

    /// Stores the rates that the sender announces for a layer, in bits and frames a second.
    mutating func state(_ bitsPerSecond: Int, _ framesPerSecond: UInt8, of layer: LayerPoint) {
        guard counts.capacity > layer.index else { return }
        counts[layer.index].announced = min(max(bitsPerSecond, 0), Self.maximumAnnounced)
        counts[layer.index].announcedFrameRate = framesPerSecond
    }

    /// Clears the announced rates before a new announcement.
    mutating func clearAnnounced() {
        for index in 0..<counts.capacity {
            counts[index].announced = 0
            counts[index].announcedFrameRate = 0
        }
    }

    /// Returns the bitrate and frame rate up to a layer, per second; 0 while unknown.
    func rate(of layer: LayerPoint, at now: Instant) -> (bitrate: Int, frameRate: Double) {
        let count = counts[layer.index]
        if count.isMeasured { return (count.bitrate, count.frameRate) }
        let announced = (bitrate: 0, frameRate: Double(count.announcedFrameRate))
        guard let windowStart else { return announced }
        let elapsed = now.nanoseconds(since: windowStart)
        return elapsed >= Self.leastNanoseconds ? rate(of: layer.index, over: elapsed) : announced
    }

    private func rate(of index: Int, over elapsed: Int64) -> (bitrate: Int, frameRate: Double) {
        let count = counts[index]
        let seconds = Double(max(elapsed, 1)) / 1_000_000_000
        let bits = min(Double(count.bytes) * 8 / seconds, 1e12)
        return (Int(saturating: bits), Double(count.frames) / seconds)
    }

    /// Resets all layers but keeps their resolutions.
    mutating func removeAll() {
        for index in 0..<counts.capacity { counts[index] = Count() }
        live = .none
        seen = .none
        windowStart = nil
    }
}
