/// What one slot could be sent of its publication, within its caps, lowest first.
///
/// A camera loses size before it loses frames: only of its smallest picture fewer frames are a
/// rung. A screen is read: it loses frames before it loses size.
struct Ladder: ~Copyable {
    private(set) var rungs = List<LayerOption>(capacity: 16)
    /// Why its highest rung is not the highest option; `none` where it is.
    private(set) var limit = LayerLimit.none

    /// Builds the ladder from what is offered, which is sorted by size and then by frames.
    mutating func build(
        from options: borrowing List<LayerOption>,
        preference: LayerCap,
        roleCap: LayerCap,
        isScreen: Bool
    ) {
        rungs.removeAll()
        limit = .none
        // Of each picture size but this one there is one rung.
        let whole = wholePicture(of: options, preference, roleCap, isScreen: isScreen)
        var previous = -1
        var top = -1
        for index in 0..<options.count {
            let option = options[index]
            guard roleCap.admits(option), preference.admits(option) else { continue }
            let isSamePicture =
                previous >= 0 && option.target.isSamePicture(as: options[previous].target)
            previous = index
            if isSamePicture, !option.target.isSamePicture(as: options[whole].target) {
                guard !isScreen else { continue }
                _ = rungs.removeLast()
            }
            rungs.append(option)
            top = index
        }
        if rungs.isEmpty { top = addLeast(options, roleCap) }
        guard top + 1 < options.count else { return }
        limit = roleCap.admits(options[top + 1]) ? .preference : .role
    }

    /// An option of the picture size of which all frame rates are rungs, or -1.
    private func wholePicture(
        of options: borrowing List<LayerOption>,
        _ preference: LayerCap,
        _ roleCap: LayerCap,
        isScreen: Bool
    ) -> Int {
        var found = -1
        for index in 0..<options.count
        where roleCap.admits(options[index]) && preference.admits(options[index]) {
            found = index
            if !isScreen { break }
        }
        return found
    }

    /// Nothing is as small as the preference: the least there is, if the roles admit it.
    private mutating func addLeast(
        _ options: borrowing List<LayerOption>,
        _ roleCap: LayerCap
    ) -> Int {
        guard let least = options.first, roleCap.admits(least) else { return -1 }
        rungs.append(least)
        return 0
    }
}

extension LayerTarget {
    fileprivate func isSamePicture(as other: Self) -> Bool {
        encoding == other.encoding && spatial == other.spatial
    }
}

extension LayerCap {
    /// Whether an option is within the cap; what is not known yet is.
    ///
    /// The long side is held against the long side, so that portrait pictures fit too. An
    /// encoder's frame rate swings: a tenth more is still within.
    func admits(_ option: LayerOption) -> Bool {
        if let width, let height {
            let long = max(option.width, option.height)
            let short = min(option.width, option.height)
            guard long <= max(width, height), short <= min(width, height) else { return false }
        } else if let side = width ?? height {
            guard max(option.width, option.height) <= side else { return false }
        }
        if let frameRate, option.frameRate > frameRate * 1.1 { return false }
        if let bitrate, option.bitrate > bitrate { return false }
        return true
    }
}
