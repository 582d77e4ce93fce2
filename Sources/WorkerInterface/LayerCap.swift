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
