/// The most of a video that somebody may or wants to be sent; `nil`: no limit.
package struct LayerCap: Hashable, Sendable, BitwiseCopyable {
    /// Pixels of the longer side, where the height is the shorter, or of a landscape picture.
    package var width: Int?
    package var height: Int?
    /// Frames a second.
    package var frameRate: Double?
    /// Bits a second.
    package var bitrate: Int?

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

    var isNone: Bool { self == .none }

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
