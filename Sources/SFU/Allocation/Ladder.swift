import WorkerInterface

/// Ladder of the layers that one slot may be sent within its caps, lowest first.
///
/// A camera reduces resolution before frame rate: only its smallest picture has rungs with fewer
/// frames. A screen share must stay readable: it reduces frame rate before resolution.
struct Ladder: ~Copyable {
    /// Limits on a slot's layers.
    struct Bounds: BitwiseCopyable {
        var preference = LayerCap.none
        var roleCap = LayerCap.none
        var isScreen = false
        /// Present target; a larger frame rate tolerance keeps it from being left for a small
        /// change.
        var current: LayerTarget?

        /// Whether a bitrate cap applies, which a lower frame rate would meet.
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

    /// Share of the highest frame rate below which a camera reduces resolution instead.
    static let smoothShare = 0.6

    private var options = UncountedArray<LayerOption>(capacity: 16)
    private(set) var rungs = UncountedArray<LayerOption>(capacity: 16)
    /// Limit that excludes the options above the highest rung; `none` if there are none.
    private(set) var limit = LayerLimit.none

    mutating func removeAll() { options.removeAll() }

    /// Adds an option; options come sorted by size and then by frame rate.
    mutating func offer(_ option: LayerOption) { options.append(option) }

    /// Builds the ladder from the added options.
    mutating func build(within bounds: Bounds) {
        rungs.removeAll()
        limit = .none
        // Every picture size except this one gets a single rung.
        let whole = wholePicture(within: bounds)
        let smooth = smoothRate(within: bounds)
        var previous: LayerTarget?
        var top: Int?
        for index in 0..<options.count {
            let option = options[index]
            guard bounds.admits(option) else { continue }
            let isWhole = whole.map { option.target.isSamePicture(as: $0) } ?? false
            guard isWhole || option.frameRate == 0 || option.frameRate >= smooth else { continue }
            let isSamePicture = previous.map { option.target.isSamePicture(as: $0) } ?? false
            previous = option.target
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

    /// Whether a rung is not above the layer that a slot has.
    ///
    /// A rung that is the only one of its picture size is held at any of its frame rates.
    func holds(_ given: LayerOption, at index: Int) -> Bool {
        let rung = rungs[index]
        if !LayerOption.isLower(given, than: rung) { return true }
        guard rung.target.isSamePicture(as: given.target) else { return false }
        return index == 0 || !rung.target.isSamePicture(as: rungs[index - 1].target)
    }

    /// Returns the limit that excludes the options above the top rung.
    private func limit(above top: Int?, within bounds: Bounds) -> LayerLimit {
        let first = top.map { $0 + 1 } ?? 0
        guard first < options.count else { return .none }
        for index in first..<options.count where !bounds.admits(options[index]) {
            return bounds.isPermitted(options[index]) ? .preference : .role
        }
        // The options above the top have too low a frame rate, which follows from the bitrate cap.
        return bounds.roleCap.bitrate != nil ? .role : .preference
    }

    /// Returns an option of the picture size whose frame rates are all rungs, if there is one.
    private func wholePicture(within bounds: Bounds) -> LayerTarget? {
        var found: LayerTarget?
        for index in 0..<options.count where bounds.admits(options[index]) {
            found = options[index].target
            if !bounds.isScreen { break }
        }
        return found
    }

    /// Returns the lowest frame rate at which a larger picture is preferred to a smaller one.
    private func smoothRate(within bounds: Bounds) -> Double {
        guard bounds.boundsBits, !bounds.isScreen else { return 0 }
        var highest = 0.0
        for index in 0..<options.count where bounds.admits(options[index]) {
            highest = max(highest, options[index].frameRate)
        }
        return highest * Self.smoothShare
    }

    /// Adds the lowest option if none meets the preference and the role permits it; returns its
    /// index.
    private mutating func addLeast(within bounds: Bounds) -> Int? {
        guard let least = options.first, bounds.isPermitted(least) else { return nil }
        rungs.append(least)
        return 0
    }
}

extension LayerTarget {
    fileprivate func isSamePicture(as other: Self) -> Bool {
        encoding == other.encoding && spatial == other.spatial
    }
}
