/// Upper limits on a video layer, set by a role or a preference; `nil` means no limit.
///
/// It is kept small because each slot has two.
package struct LayerCap: Hashable, Sendable, BitwiseCopyable {
    private var widthLimit: UInt16 = 0
    private var heightLimit: UInt16 = 0
    private var bitrateLimit: UInt32 = 0
    private var frameRateLimit: Float = 0

    /// Longer side of a landscape picture, 1 to 65,535 pixels.
    package var width: Int? {
        get { widthLimit > 0 ? Int(widthLimit) : nil }
        set { widthLimit = newValue.map { UInt16(clamping: max($0, 1)) } ?? 0 }
    }

    /// Shorter side, 1 to 65,535 pixels.
    package var height: Int? {
        get { heightLimit > 0 ? Int(heightLimit) : nil }
        set { heightLimit = newValue.map { UInt16(clamping: max($0, 1)) } ?? 0 }
    }

    /// Frame rate in frames a second, at least 0.001.
    package var frameRate: Double? {
        get { frameRateLimit > 0 ? Double(frameRateLimit) : nil }
        set { frameRateLimit = newValue.map { Float(max($0, 0.001)) } ?? 0 }
    }

    /// Bitrate in bits a second, up to 4 Gbit/s.
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

/// Coded as its four limits, or as nothing where there are none.
extension LayerCap: Codable {
    package init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        guard !container.isAtEnd else { return }
        widthLimit = try container.decode(UInt16.self)
        heightLimit = try container.decode(UInt16.self)
        bitrateLimit = try container.decode(UInt32.self)
        frameRateLimit = try container.decode(Float.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        guard self != .none else { return }
        try container.encode(widthLimit)
        try container.encode(heightLimit)
        try container.encode(bitrateLimit)
        try container.encode(frameRateLimit)
    }
}
