import RTP
import WorkerInterface

/// Layer of its publication that a slot should be sent.
struct LayerTarget: Hashable, BitwiseCopyable {
    var encoding: EncodingIndex
    /// Highest spatial layer that is forwarded, 0 to 7.
    var spatial: UInt8
    /// Highest temporal layer that is forwarded, 0 to 3.
    var temporal: UInt8

    var point: LayerPoint { LayerPoint(spatial: spatial, temporal: temporal) }
}

/// Layer on offer, with its measured size and rate.
struct LayerOption: BitwiseCopyable {
    /// Largest number of options of one publication, over encodings, spatial and temporal layers.
    static let maximumCount = 32

    var target: LayerTarget
    /// Size in pixels; 0 while unknown.
    var width: Int
    var height: Int
    /// Frame rate of this layer with the layers it depends on, in frames a second; 0 while unknown.
    var frameRate: Double
    /// Bitrate of the same layers, in bits a second; 0 while unknown.
    var bitrate: Int
    /// Recent peak or announced bitrate, in bits a second; 0 while unknown.
    var usualBitrate = 0

    var pixels: Int { width * height }

    /// Measured bitrate in bits a second, or else a guess from its size.
    var likelyBitrate: Int {
        if bitrate > 0 { return bitrate }
        if usualBitrate > 0 { return usualBitrate }
        return pixels > 0 ? pixels * Self.usualBitsPerPixel : Self.usualBitrate
    }

    /// Bitrate that must fit before a slot climbs to it, in bits a second.
    ///
    /// It allows for a higher peak, as an encoding that resumes starts with little.
    var peakBitrate: Int { max(likelyBitrate, usualBitrate) }

    /// Bitrate that it may reach in motion, in bits a second; a still picture's own says little of
    /// that.
    ///
    /// `cap` limits the guess if the publisher keeps to one.
    func motionBitrate(within cap: Int?) -> Int {
        max(peakBitrate, min(pixels * Self.usualBitsPerPixel, cap ?? .max))
    }

    /// Usual bits a second per pixel, and the usual bitrate if even the size is unknown.
    private static let usualBitsPerPixel = 2
    private static let usualBitrate = 300_000

    /// Averages the bitrate with that of the last window, so one keyframe does not distort it.
    mutating func steady(by others: borrowing UncountedArray<LayerOption>) {
        for index in 0..<others.count where others[index].target == target {
            let before = others[index].bitrate
            if before > 0, bitrate > 0 { bitrate = (before + bitrate) / 2 }
        }
    }
}

extension LayerCap {
    /// Factor by which a measured frame rate may exceed the cap.
    static let frameRateTolerance = 1.1
    /// The same factor for the layer that is sent already.
    static let keptTolerance = 1.25

    /// Whether an option is within the cap; unknown values are.
    ///
    /// The longer sides are compared with each other, and the shorter ones, so portrait pictures
    /// fit as landscape ones do.
    func admits(
        _ option: LayerOption,
        tolerance: Double = frameRateTolerance
    ) -> Bool {
        guard admitsSize(of: option) else { return false }
        if let frameRate, option.frameRate > frameRate * tolerance { return false }
        if let bitrate, option.bitrate > bitrate { return false }
        return true
    }

    /// Whether an option is within the cap but for its frame rate and its bitrate.
    func admitsSize(of option: LayerOption) -> Bool {
        admitsSize(option.width, option.height)
    }

    /// Whether a picture of so many pixels is within the cap; an unknown size is.
    func admits(_ size: LayerSize) -> Bool { admitsSize(Int(size.width), Int(size.height)) }

    private func admitsSize(_ width: Int, _ height: Int) -> Bool {
        let long = max(width, height)
        let short = min(width, height)
        var longest = self.width
        var shortest = self.height
        if let width = longest, let height = shortest {
            longest = max(width, height)
            shortest = min(width, height)
        }
        if let longest, long > longest { return false }
        if let shortest, short > shortest { return false }
        return true
    }
}
