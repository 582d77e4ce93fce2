import RTP
import WorkerInterface

/// What a slot should be sent of its publication.
struct LayerTarget: Hashable, BitwiseCopyable {
    /// Index of the encoding; -1: nothing, its video is off.
    var encoding: Int32
    /// The highest spatial layer that is forwarded, 0 to 7.
    var spatial: UInt8
    /// The highest temporal layer that is forwarded, 0 to 3.
    var temporal: UInt8

    static let nothing = Self(encoding: -1, spatial: 0, temporal: 0)

    var point: LayerPoint { LayerPoint(spatial: spatial, temporal: temporal) }
}

/// One thing that could be sent, as measured.
struct LayerOption: BitwiseCopyable {
    /// Encodings, spatial and temporal layers that are told apart at most.
    static let maximumCount = 32

    var target: LayerTarget
    /// Pixels; 0 while unknown.
    var width: Int
    var height: Int
    /// Frames a second of this layer with all that it needs; 0 while unknown.
    var frameRate: Double
    /// Bits a second, likewise.
    var bitrate: Int
    /// The most that it took of late, or is said to be going to take; 0 while unknown.
    var usualBitrate = 0

    var pixels: Int { width * height }

    /// What it takes, in bits a second, by measure or else by a guess from its size.
    var likelyBitrate: Int {
        if bitrate > 0 { return bitrate }
        if usualBitrate > 0 { return usualBitrate }
        return pixels > 0 ? pixels * Self.usualBitsPerPixel : Self.usualBitrate
    }

    /// What there must be room for before anybody turns to it, in bits a second: what starts anew
    /// begins with little.
    var risingBitrate: Int { max(likelyBitrate, usualBitrate) }

    /// What it may take when its picture moves, within `cap` if its publisher keeps to one, in bits
    /// a second: a still one says little of that.
    func livelyBitrate(within cap: Int?) -> Int {
        max(risingBitrate, min(pixels * Self.usualBitsPerPixel, cap ?? .max))
    }

    /// Bits a second and pixel that encoders usually spend, and where not even the size is known.
    private static let usualBitsPerPixel = 2
    private static let usualBitrate = 300_000

    /// Smooths the rate with that of the last window: one keyframe makes no other layer of it.
    mutating func steady(by others: borrowing List<LayerOption>) {
        for index in 0..<others.count where others[index].target == target {
            let before = others[index].bitrate
            if before > 0, bitrate > 0 { bitrate = (before + bitrate) / 2 }
        }
    }
}

/// Where what is forwarded of one encoding ends: at a spatial and at a temporal layer.
struct LayerPoint: Hashable, BitwiseCopyable {
    let rawValue: UInt8

    /// What an encoding has at most, told apart: eight spatial layers of four temporal ones.
    static let count = 32
    /// Above every layer.
    static let top = Self(spatial: 7, temporal: 3)

    init(spatial: UInt8, temporal: UInt8) {
        rawValue = min(spatial, 7) << 2 | min(temporal, 3)
    }

    init(index: Int) { rawValue = UInt8(truncatingIfNeeded: index & 31) }

    var spatial: UInt8 { rawValue >> 2 }
    var temporal: UInt8 { rawValue & 3 }
    var index: Int { Int(rawValue) }
}

/// Some points, one bit for each: who of the followers a packet is for.
struct LayerPoints: Hashable, BitwiseCopyable {
    var rawValue: UInt32

    static let all = Self(rawValue: .max)
    static let none = Self(rawValue: 0)

    init(rawValue: UInt32) { self.rawValue = rawValue }

    init(_ point: LayerPoint) { rawValue = 1 << UInt32(point.rawValue) }

    /// All points that take a layer in, where higher ones build on lower ones.
    init(from spatial: UInt8, _ temporal: UInt8) {
        let row = UInt32(0xf) << UInt32(min(temporal, 3)) & 0xf
        rawValue = (row &* 0x1111_1111) << UInt32(4 * min(spatial, 7))
    }

    /// The points of one temporal layer.
    init(temporal: UInt8) { rawValue = 0x1111_1111 << UInt32(min(temporal, 3)) }

    /// The points of one spatial layer.
    init(spatial: UInt8) { rawValue = 0xf << UInt32(4 * min(spatial, 7)) }

    func contains(_ point: LayerPoint) -> Bool {
        rawValue >> UInt32(point.rawValue & 31) & 1 != 0
    }

    func union(_ other: Self) -> Self { Self(rawValue: rawValue | other.rawValue) }
    func intersection(_ other: Self) -> Self { Self(rawValue: rawValue & other.rawValue) }
    mutating func formUnion(_ other: Self) { rawValue |= other.rawValue }
    mutating func formIntersection(_ other: Self) { rawValue &= other.rawValue }
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
