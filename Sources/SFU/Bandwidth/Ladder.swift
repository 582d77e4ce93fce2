import WorkerInterface

/// What one slot could be sent of its publication, within its caps, lowest first.
///
/// A camera loses size before it loses frames: only of its smallest picture fewer frames are a
/// rung. A screen is read: it loses frames before it loses size.
struct Ladder: ~Copyable {
    /// What a slot may be sent of its publication.
    struct Bounds: BitwiseCopyable {
        var preference = LayerCap.none
        var roleCap = LayerCap.none
        var isScreen = false
        /// What it is sent now; a small change of its frame rate is no reason to leave it.
        var current = LayerTarget.nothing

        /// Whether bits are bounded, which fewer frames would keep within.
        var boundsBits: Bool { preference.bitrate != nil || roleCap.bitrate != nil }

        func admits(_ option: LayerOption) -> Bool {
            preference.admits(option, tolerance: tolerance(option)) && isPermitted(option)
        }

        func isPermitted(_ option: LayerOption) -> Bool {
            roleCap.admits(option, tolerance: tolerance(option))
        }

        private func tolerance(_ option: LayerOption) -> Double {
            option.target == current ? LayerCap.keptTolerance : LayerCap.frameRateTolerance
        }
    }

    /// A camera's picture loses size before it loses more than this share of its frames.
    static let smoothShare = 0.6

    private var options = List<LayerOption>(capacity: 16)
    private(set) var rungs = List<LayerOption>(capacity: 16)
    /// Why its highest rung is not the highest option; `none` where it is.
    private(set) var limit = LayerLimit.none

    mutating func removeAll() { options.removeAll() }

    /// Takes one thing that is offered; they come sorted by size and then by frames.
    mutating func offer(_ option: LayerOption) { options.append(option) }

    /// Builds the ladder from what was offered.
    mutating func build(within bounds: Bounds) {
        rungs.removeAll()
        limit = .none
        // Of each picture size but this one there is one rung.
        let whole = wholePicture(within: bounds)
        let smooth = smoothRate(within: bounds)
        var previous = -1
        var top = -1
        for index in 0..<options.count {
            let option = options[index]
            guard bounds.admits(option) else { continue }
            let isWhole = option.target.isSamePicture(as: options[whole].target)
            guard isWhole || option.frameRate == 0 || option.frameRate >= smooth else { continue }
            let isSamePicture =
                previous >= 0 && option.target.isSamePicture(as: options[previous].target)
            previous = index
            if isSamePicture, !isWhole {
                guard !bounds.isScreen else { continue }
                _ = rungs.removeLast()
            }
            rungs.append(option)
            top = index
        }
        if rungs.isEmpty { top = addLeast(within: bounds) }
        limit = limit(above: top, within: bounds)
    }

    /// Whether a rung is no more than what somebody has.
    ///
    /// Where its picture has no other rung, its frames come and go without it being another.
    func holds(_ given: LayerOption, at index: Int) -> Bool {
        let rung = rungs[index]
        if !LayerOption.isLower(given, than: rung) { return true }
        guard rung.target.isSamePicture(as: given.target) else { return false }
        return index == 0 || !rung.target.isSamePicture(as: rungs[index - 1].target)
    }

    /// What bounds the ladder, where there are options above its top.
    private func limit(above top: Int, within bounds: Bounds) -> LayerLimit {
        guard top + 1 < options.count else { return .none }
        for index in top + 1..<options.count where !bounds.admits(options[index]) {
            return bounds.isPermitted(options[index]) ? .preference : .role
        }
        // Only its frames are too few, which bits have to do with.
        return bounds.roleCap.bitrate != nil ? .role : .preference
    }

    /// An option of the picture size of which all frame rates are rungs, or -1.
    private func wholePicture(within bounds: Bounds) -> Int {
        var found = -1
        for index in 0..<options.count where bounds.admits(options[index]) {
            found = index
            if !bounds.isScreen { break }
        }
        return found
    }

    /// The least frames a second with which a larger picture is better than a smaller one.
    private func smoothRate(within bounds: Bounds) -> Double {
        guard bounds.boundsBits, !bounds.isScreen else { return 0 }
        var highest = 0.0
        for index in 0..<options.count where bounds.admits(options[index]) {
            highest = max(highest, options[index].frameRate)
        }
        return highest * Self.smoothShare
    }

    /// Nothing is as small as the preference: the least there is, if the roles admit it.
    private mutating func addLeast(within bounds: Bounds) -> Int {
        guard let least = options.first, bounds.isPermitted(least) else { return -1 }
        rungs.append(least)
        return 0
    }
}

extension LayerTarget {
    fileprivate func isSamePicture(as other: Self) -> Bool {
        encoding == other.encoding && spatial == other.spatial
    }
}
