package import RTP

/// Mixer of all audio tracks, each sample at its capture time.
///
/// Missing samples are silence, so the output never ends and never stalls.
package struct AudioMixer {
    /// Sample rate in hertz.
    package static let rate = 48_000
    /// Channels: left and right.
    package static let channels = 2
    /// Largest number of mixed tracks; further ones are ignored.
    package static let trackLimit = 64

    private struct Track {
        /// Interleaved samples; a ring buffer indexed by the sample's number since the beginning.
        var samples: [Float]
        /// Number of the sample after the last one added.
        var end: Int64?
    }

    /// Samples that a track may be ahead; also the ring buffer's size.
    private static let capacity = rate * 2
    /// Drift in samples below which a track continues without a gap or an overlap.
    private static let slack = Int64(rate / 50)

    private let origin: Instant
    private var tracks: [UInt32: Track] = [:]
    /// Number of the next sample to output.
    private var position: Int64 = 0

    /// - Parameter origin: the capture time of the first sample.
    package init(origin: Instant) { self.origin = origin }

    /// Adds interleaved left and right samples captured from `instant` on.
    ///
    /// Samples that are too late, or more than two seconds ahead, are dropped.
    package mutating func add(_ samples: [Float], of number: UInt32, at instant: Instant) {
        let capacity = Self.capacity
        var track: Track
        if let known = tracks[number] {
            track = known
        } else {
            guard tracks.count < Self.trackLimit else { return }
            let silence = [Float](repeating: 0, count: capacity * Self.channels)
            track = Track(samples: silence)
        }
        tracks[number] = nil
        let exact = Self.samples(instant.nanoseconds(since: origin))
        var start = exact
        if let end = track.end, abs(end &- exact) < Self.slack { start = end }
        let count = samples.count / Self.channels
        for index in 0..<count {
            let place = start &+ Int64(index)
            guard place >= position, place &- position < Int64(capacity) else { continue }
            let slot = Int(place % Int64(capacity)) * Self.channels
            track.samples[slot] = samples[index * Self.channels]
            track.samples[slot + 1] = samples[index * Self.channels + 1]
        }
        track.end = start &+ Int64(count)
        tracks[number] = track
    }

    /// Converts nanoseconds to samples.
    ///
    /// The result is at most 4.5 * 10^14, as Int64 holds 9.3 * 10^9 seconds in nanoseconds.
    private static func samples(_ nanoseconds: Int64) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let rate = Int64(Self.rate)
        return seconds &* rate &+ rest &* rate / 1_000_000_000
    }

    /// Discards the samples of a track that have not been output.
    package mutating func forget(_ number: UInt32) { tracks[number] = nil }

    /// Returns the next samples, left ones and then as many right ones, each from -1 to 1.
    package mutating func take(_ count: Int) -> [Float] {
        var sum = [Float](repeating: 0, count: count * Self.channels)
        for number in Array(tracks.keys) {
            guard var track = tracks.removeValue(forKey: number) else { continue }
            for index in 0..<count {
                let place = (position + Int64(index)) % Int64(Self.capacity)
                let slot = Int(place) * Self.channels
                sum[index] += track.samples[slot]
                sum[count + index] += track.samples[slot + 1]
                track.samples[slot] = 0
                track.samples[slot + 1] = 0
            }
            tracks[number] = track
        }
        position += Int64(count)
        for index in sum.indices { sum[index] = Self.limited(sum[index]) }
        return sum
    }

    /// Limits a loud sample softly, so that several simultaneous speakers do not clip.
    private static func limited(_ sample: Float) -> Float {
        let knee: Float = 0.7
        let size = abs(sample)
        guard size > knee else { return sample }
        let over = (size - knee) / (1 - knee)
        let bent = knee + (1 - knee) * over / (1 + over)
        return sample < 0 ? -bent : bent
    }
}
