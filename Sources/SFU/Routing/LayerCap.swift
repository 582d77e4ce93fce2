/// The most of a video that somebody may or wants to be sent; `nil`: no limit.
///
/// Small, because there are two for each slot.
package struct LayerCap: Hashable, Sendable, BitwiseCopyable {
    private var widthLimit: UInt16 = 0
    private var heightLimit: UInt16 = 0
    private var bitrateLimit: UInt32 = 0
    private var frameRateLimit: Float = 0

    /// Pixels of a landscape picture's longer side, 1 to 65,535.
    package var width: Int? {
        get { widthLimit > 0 ? Int(widthLimit) : nil }
        set { widthLimit = newValue.map { UInt16(clamping: max($0, 1)) } ?? 0 }
    }

    /// Pixels of its shorter side.
    package var height: Int? {
        get { heightLimit > 0 ? Int(heightLimit) : nil }
        set { heightLimit = newValue.map { UInt16(clamping: max($0, 1)) } ?? 0 }
    }

    /// Frames a second, more than 0.
    package var frameRate: Double? {
        get { frameRateLimit > 0 ? Double(frameRateLimit) : nil }
        set { frameRateLimit = newValue.map { Float(max($0, 0.001)) } ?? 0 }
    }

    /// Bits a second, up to 4 Gbit/s.
    package var bitrate: Int? {
        get { bitrateLimit > 0 ? Int(bitrateLimit) : nil }
        set { bitrateLimit = newValue.map { UInt32(clamping: max($0, 1)) } ?? 0 }
    }

    package static let none = Self()

    package init(
        width: Int? = nil,
        height: Int? = nil,
        frameRate: Double? = nil,
        bitrate: Int? = nil
    ) {
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.bitrate = bitrate
    }
}

extension LayerCap {
    /// Frame rates are measured: so much above a cap is still within it.
    static let frameRateTolerance = 1.1
    /// The same for what is being sent already.
    static let keptTolerance = 1.25

    /// Whether an option is within the cap; what is not known yet is.
    ///
    /// Longer side is held against longer side, so that a portrait picture fits like any other.
    func admits(
        _ option: LayerOption,
        tolerance: Double = frameRateTolerance
    ) -> Bool {
        let long = max(option.width, option.height)
        let short = min(option.width, option.height)
        var longest = width
        var shortest = height
        if let width, let height {
            longest = max(width, height)
            shortest = min(width, height)
        }
        if let longest, long > longest { return false }
        if let shortest, short > shortest { return false }
        if let frameRate, option.frameRate > frameRate * tolerance { return false }
        if let bitrate, option.bitrate > bitrate { return false }
        return true
    }
}
