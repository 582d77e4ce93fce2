internal import RTP

/// Which option a viewer gets that is limited by caps alone.
///
/// A cap is the most that is wanted: the highest option within it, else the lowest there is.
struct LayerChoice: BitwiseCopyable {
    var preference = LayerCap.none
    var roleCap = LayerCap.none
    /// A screen's text must stay sharp: it gives up frames before pixels.
    var isScreen = false
    /// What the viewer gets now; it is not left because of a small change of its frame rate.
    var current = LayerTarget.nothing

    /// Frame rates are measured: so much above a cap is still within it.
    static let frameRateTolerance = 1.1
    /// The same for what is being sent already.
    static let keptTolerance = 1.25
    /// A camera's picture loses pixels before it loses more than this share of its frames.
    static let smoothShare = 0.6

    /// Index of the option chosen, or -1 where there is none; `options` has the lowest first.
    func choose(from options: borrowing List<LayerOption>) -> Int {
        guard !options.isEmpty else { return -1 }
        let isBound = preference.bitrate != nil || roleCap.bitrate != nil
        let best = isBound && !isScreen ? Self.smoothShare * highestFrameRate(in: options) : 0
        var chosen = -1
        for index in 0..<options.count {
            let option = options[index]
            guard admits(option) else { continue }
            guard option.frameRate == 0 || option.frameRate >= best else { continue }
            chosen = index
        }
        return max(chosen, 0)
    }

    /// Of what is within the caps.
    private func highestFrameRate(in options: borrowing List<LayerOption>) -> Double {
        var highest = 0.0
        for index in 0..<options.count {
            let option = options[index]
            guard admits(option) else { continue }
            highest = max(highest, option.frameRate)
        }
        return highest
    }

    private func admits(_ option: LayerOption) -> Bool {
        let tolerance =
            option.target == current ? Self.keptTolerance : Self.frameRateTolerance
        return preference.admits(option, tolerance: tolerance)
            && roleCap.admits(option, tolerance: tolerance)
    }
}

extension LayerCap {
    /// Whether an option is within the cap; what is not known yet is.
    ///
    /// Longer side is held against longer side, so that a portrait picture fits like any other.
    func admits(
        _ option: LayerOption,
        tolerance: Double = LayerChoice.frameRateTolerance
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
