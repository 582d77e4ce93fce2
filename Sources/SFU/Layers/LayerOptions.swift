import RTP
import WorkerInterface

/// Layers on offer from a publication.
extension Core {
    /// Lists the options of a publication, lowest first: fewer pixels, then fewer frames.
    ///
    /// They are its live layers and its paused ones, except those above the publisher's role cap.
    /// There are at most `LayerOption.maximumCount`; if `options` has less room, it allocates.
    func options(
        of publication: Int,
        at now: Instant,
        into options: inout UncountedArray<LayerOption>
    ) {
        options.removeAll()
        let cap = publications[publication].configuration.cap
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            guard encodings[Int(encoding)].isOffered else { continue }
            let isLive = encodings[Int(encoding)].isLive
            var layers =
                isLive
                ? encodings[Int(encoding)].layers.offered.rawValue
                : encodings[Int(encoding)].layers.known.rawValue
            while layers != 0, options.count < LayerOption.maximumCount {
                let layer = LayerPoint(index: layers.trailingZeroBitCount)
                let option =
                    isLive
                    ? option(layer, of: encoding, at: now) : restingOption(layer, of: encoding)
                if cap.admits(option) { insert(option, into: &options) }
                layers &= layers &- 1
            }
        }
    }

    private func option(_ layer: LayerPoint, of encoding: Int32, at now: Instant) -> LayerOption {
        let index = Int(encoding)
        let size = encodings[index].layers.size(of: layer.spatial)
        let rate = encodings[index].layers.rate(of: layer, at: now)
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
            usualBitrate: encodings[index].layers.expectedBitrate(of: layer)
        )
    }

    /// Returns the option of a paused layer, as it was last.
    private func restingOption(_ layer: LayerPoint, of encoding: Int32) -> LayerOption {
        let index = Int(encoding)
        let size = encodings[index].layers.size(of: layer.spatial)
        let target = LayerTarget(
            encoding: encoding,
            spatial: layer.spatial,
            temporal: layer.temporal
        )
        let last = encodings[index].lastOption
        return LayerOption(
            target: target,
            width: Int(size.width),
            height: Int(size.height),
            frameRate: last?.target == target ? last?.frameRate ?? 0 : 0,
            bitrate: 0,
            usualBitrate: encodings[index].layers.expectedBitrate(of: layer)
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
        return isLower(encoding: Int(left.target.encoding), than: Int(right.target.encoding))
    }

    /// Compares encodings of equal or unknown size: by frame rate, bitrate, then position in the
    /// offer.
    private func isLower(encoding left: Int, than right: Int) -> Bool {
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
}
