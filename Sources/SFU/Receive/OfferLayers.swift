import RTP
import WorkerInterface

/// Layers on offer from a publication.
extension Receiver {
    /// Time for which the lowest encoding may pause and still be on offer.
    ///
    /// Without it, nothing could be sent where bandwidth is too low for more.
    private static let pauseMilliseconds: Int64 = 1_500
    /// Time that a publisher may take to resume a requested encoding.
    private static let wakingMilliseconds: Int64 = 3_000
    /// Time for which an encoding whose frame rate or bitrate was above the cap is not tried again.
    private static let cappedMilliseconds: Int64 = 30_000

    /// Rebuilds the list of layers on offer.
    ///
    /// Returns whether subscribers are to choose again: a publication without any live encoding
    /// keeps its options for when it resumes.
    mutating func updateOffers(of publication: PublicationIndex, at now: Instant) -> Bool {
        guard publications[publication].kind == .video, publications[publication].isOpen else {
            return false
        }
        guard updateLiveness(of: publication, at: now) || publications[publication].withheld != 0
        else { return false }
        var options = UncountedArray<LayerOption>(capacity: LayerOption.maximumCount)
        self.options(of: publication, at: now, into: &options)
        for index in 0..<options.count {
            options[index].steady(by: publications[publication].options)
        }
        for index in 0..<options.count { noteLast(options[index]) }
        offer(options, of: publication, at: now)
        return true
    }

    /// Applies another cap of the publisher's role to what is on offer.
    ///
    /// It does so also while nothing is received: what comes next may be above it.
    mutating func applyCap(to publication: PublicationIndex, at now: Instant) {
        for position in 0..<publications[publication].encodings.count {
            encodings[publications[publication].encodings[position]].cappedAt = nil
        }
        guard !updateOffers(of: publication, at: now) else { return }
        var options = UncountedArray<LayerOption>(capacity: LayerOption.maximumCount)
        for index in 0..<publications[publication].options.count {
            options.append(publications[publication].options[index])
        }
        offer(options, of: publication, at: now)
    }

    /// Removes stored packets of pictures that are larger than the cap of the publisher's role, so
    /// that they are not sent again.
    mutating func forgetPicturesAboveCap(of publication: PublicationIndex) {
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            if isPictureAboveCap(encoding) { encodings[encoding].history.removeAll(from: &pool) }
        }
    }

    /// Takes layers off the offer whose pictures are now larger than the cap of the publisher's
    /// role.
    mutating func withdrawAboveCap(of publication: PublicationIndex) {
        let cap = publications[publication].configuration.cap
        var kept = 0
        for index in 0..<publications[publication].options.count {
            let option = publications[publication].options[index]
            let spatial = option.target.spatial
            let size = encodings[option.target.encoding].layers.size(of: spatial)
            guard cap.admits(size) else { continue }
            publications[publication].options[kept] = option
            kept &+= 1
        }
        guard kept < publications[publication].options.count else { return }
        publications[publication].options.removeAll(from: kept)
        publications[publication].aboveCap = kept == 0 ? .all : .some
    }

    /// Whether an encoding's whole picture is larger than the cap of the publisher's role.
    func isPictureAboveCap(_ encoding: EncodingIndex) -> Bool {
        let highest = encodings[encoding].layers.highest.spatial
        let cap = publications[encodings[encoding].publication].configuration.cap
        return !cap.admits(encodings[encoding].layers.size(of: highest))
    }

    /// Offers those layers that the cap of the publisher's role admits.
    ///
    /// If all layers are above it by their frame rate or bitrate alone, the lowest one stays: a
    /// picture that comes and goes with each measurement serves nobody, and the publisher is held
    /// to its bitrate packet by packet (`RatePolicer`).
    private mutating func offer(
        _ options: borrowing UncountedArray<LayerOption>,
        of publication: PublicationIndex,
        at now: Instant
    ) {
        let cap = publications[publication].configuration.cap
        publications[publication].options.removeAll()
        for index in 0..<options.count where admits(options[index], of: publication, at: now) {
            publications[publication].options.append(options[index])
            noteLast(options[index])
        }
        if publications[publication].options.isEmpty {
            for index in 0..<options.count where cap.admitsSize(of: options[index]) {
                publications[publication].options.append(options[index])
                break
            }
        }
        let offered = publications[publication].options.count
        let isComplete = offered == options.count && !hasPausedAboveCap(publication, at: now)
        publications[publication].aboveCap = isComplete ? .none : offered == 0 ? .all : .some
    }

    /// Whether the cap of the publisher's role admits a layer.
    private mutating func admits(
        _ option: LayerOption,
        of publication: PublicationIndex,
        at now: Instant
    ) -> Bool {
        let encoding = option.target.encoding
        let cap = publications[publication].configuration.cap
        guard encodings[encoding].isLive else { return cap.admits(option) }
        // While an encoding pauses, its rates fall below the cap.
        let isPausing = publications[publication].wanted & bit(of: encoding) == 0
        if isPausing, isCapped(encoding, at: now) { return false }
        guard !cap.admits(option) else { return true }
        if cap.admitsSize(of: option) { encodings[encoding].cappedAt = now }
        return false
    }

    /// Whether an encoding was above the cap by what it takes, and not by its size, a short while
    /// ago.
    private func isCapped(_ encoding: EncodingIndex, at now: Instant) -> Bool {
        guard let time = encodings[encoding].cappedAt else { return false }
        return now.milliseconds(since: time) < Self.cappedMilliseconds
    }

    /// Whether an encoding that is not on offer was above the cap of the publisher's role.
    private func hasPausedAboveCap(_ publication: PublicationIndex, at now: Instant) -> Bool {
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            guard !encodings[encoding].isOffered else { continue }
            if isAboveCap(encoding, of: publication, at: now) { return true }
        }
        return false
    }

    /// Remembers a layer of an encoding that is received, for when the encoding has paused.
    private mutating func noteLast(_ option: LayerOption) {
        let encoding = option.target.encoding
        if encodings[encoding].isLive { encodings[encoding].lastOption = option }
    }

    /// Updates which encodings are live and which on offer; returns whether any is live.
    private mutating func updateLiveness(of publication: PublicationIndex, at now: Instant) -> Bool
    {
        var isAnyLive = false
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            encodings[encoding].isLive = isLive(encoding, at: now)
            encodings[encoding].isOffered =
                encodings[encoding].isLive || isResumable(position, of: publication, at: now)
            if encodings[encoding].isLive {
                isAnyLive = true
                encodings[encoding].resumeRequestedAt = nil
            }
        }
        return isAnyLive
    }

    /// Lists the options of a publication, lowest first: fewer pixels, then fewer frames.
    ///
    /// They are its live layers and its paused ones, whether the role admits them or not.
    /// There are at most `LayerOption.maximumCount`; if `options` has less room, it allocates.
    func options(
        of publication: PublicationIndex,
        at now: Instant,
        into options: inout UncountedArray<LayerOption>
    ) {
        options.removeAll()
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            guard encodings[encoding].isOffered else { continue }
            let isLive = encodings[encoding].isLive
            var layers =
                isLive
                ? encodings[encoding].layers.offered.rawValue
                : encodings[encoding].layers.known.rawValue
            while layers != 0, options.count < LayerOption.maximumCount {
                let layer = LayerPoint(index: layers.trailingZeroBitCount)
                let option =
                    isLive
                    ? option(layer, of: encoding, at: now) : restingOption(layer, of: encoding)
                insert(option, into: &options)
                layers &= layers &- 1
            }
        }
    }

    private func option(
        _ layer: LayerPoint,
        of encoding: EncodingIndex,
        at now: Instant
    ) -> LayerOption {
        let size = encodings[encoding].layers.size(of: layer.spatial)
        let rate = encodings[encoding].layers.rate(of: layer, at: now)
        return LayerOption(
            target: LayerTarget(
                encoding: encoding,
                spatial: layer.spatial,
                temporal: layer.temporal
            ),
            width: Int(size.width),
            height: Int(size.height),
            frameRate: rate.frameRate,
            bitrate: rate.bitrate,
            usualBitrate: encodings[encoding].layers.expectedBitrate(of: layer)
        )
    }

    /// Returns the option of a paused layer, as it was last.
    private func restingOption(_ layer: LayerPoint, of encoding: EncodingIndex) -> LayerOption {
        let size = encodings[encoding].layers.size(of: layer.spatial)
        let target = LayerTarget(
            encoding: encoding,
            spatial: layer.spatial,
            temporal: layer.temporal
        )
        let last = encodings[encoding].lastOption
        return LayerOption(
            target: target,
            width: Int(size.width),
            height: Int(size.height),
            frameRate: last?.target == target ? last?.frameRate ?? 0 : 0,
            bitrate: 0,
            usualBitrate: encodings[encoding].layers.expectedBitrate(of: layer)
        )
    }

    private func insert(_ option: LayerOption, into options: inout UncountedArray<LayerOption>) {
        options.append(option)
        var place = options.count - 1
        while place > 0, isLower(option, than: options[place - 1]) {
            options[place] = options[place - 1]
            place -= 1
        }
        options[place] = option
    }

    private func isLower(_ left: LayerOption, than right: LayerOption) -> Bool {
        if left.target.encoding == right.target.encoding {
            return left.target.point.rawValue < right.target.point.rawValue
        }
        if left.pixels != right.pixels, left.pixels > 0, right.pixels > 0 {
            return left.pixels < right.pixels
        }
        return isLower(encoding: left.target.encoding, than: right.target.encoding)
    }

    /// Compares encodings of equal or unknown size: by frame rate, bitrate, then position in the
    /// offer.
    private func isLower(encoding left: EncodingIndex, than right: EncodingIndex) -> Bool {
        // A difference of 10 % is noise; sizes may be equal by configuration.
        let (leftFrames, rightFrames) = (
            encodings[left].rate.frameRate, encodings[right].rate.frameRate
        )
        if min(leftFrames, rightFrames) > 0,
            abs(leftFrames - rightFrames) * 10 > max(leftFrames, rightFrames)
        {
            return leftFrames < rightFrames
        }
        let (leftRate, rightRate) = (encodings[left].rate.bitrate, encodings[right].rate.bitrate)
        if abs(leftRate - rightRate) * 10 > max(leftRate, rightRate) {
            return leftRate < rightRate
        }
        return encodings[left].position < encodings[right].position
    }

    /// Returns the highest encoding that is live.
    func highestLive(of publication: PublicationIndex) -> EncodingIndex? {
        var index = publications[publication].options.count
        while index > 0 {
            index -= 1
            let encoding = publications[publication].options[index].target.encoding
            if encodings[encoding].isLive { return encoding }
        }
        return nil
    }

    /// Whether an encoding is received, and goes on being so.
    func isLive(_ encoding: EncodingIndex, at now: Instant) -> Bool {
        !isWithheld(encoding) && encodings[encoding].isActive(at: now)
    }

    /// Whether a link from another node does not carry an encoding now.
    func isWithheld(_ encoding: EncodingIndex) -> Bool {
        publications[encodings[encoding].publication].withheld & bit(of: encoding) != 0
    }

    func bit(of encoding: EncodingIndex) -> UInt8 {
        1 << UInt8(encodings[encoding].position & 7)
    }

    /// Whether an encoding is the lowest one, as far as is known.
    func isLowest(_ encoding: EncodingIndex, of publication: PublicationIndex) -> Bool {
        for position in 0..<publications[publication].encodings.count {
            let other = publications[publication].encodings[position]
            guard let last = encodings[other].lastOption else { continue }
            if LayerOption.isLower(last, than: encodings[encoding].lastOption) { return false }
        }
        return true
    }

    /// Whether an inactive encoding is on offer as it was last, as it can resume.
    ///
    /// It can if it is not requested, was requested a short while ago, or is the lowest one and has
    /// paused only briefly. An encoding that does not resume when requested counts as given up by
    /// its publisher.
    func isResumable(_ position: Int, of publication: PublicationIndex, at now: Instant) -> Bool {
        let encoding = publications[publication].encodings[position]
        guard encodings[encoding].lastOption != nil, !isWithheld(encoding),
            !isAboveCap(encoding, of: publication, at: now)
        else { return false }
        guard publications[publication].wanted & bit(of: encoding) != 0 else { return true }
        if isLowest(encoding, of: publication),
            encodings[encoding].rate.isActive(within: Self.pauseMilliseconds, at: now)
        {
            return true
        }
        guard let asked = encodings[encoding].resumeRequestedAt else { return false }
        return now.milliseconds(since: asked) < Self.wakingMilliseconds
    }

    /// Whether a paused encoding was above the cap of the publisher's role.
    ///
    /// If it was so by its frame rate or bitrate alone, it is tried again after a time, and the
    /// lowest encoding always.
    func isAboveCap(
        _ encoding: EncodingIndex,
        of publication: PublicationIndex,
        at now: Instant
    ) -> Bool {
        let cap = publications[publication].configuration.cap
        guard let last = encodings[encoding].lastOption else { return false }
        guard cap.admitsSize(of: last) else { return true }
        return isCapped(encoding, at: now) && !isLowest(encoding, of: publication)
    }
}
