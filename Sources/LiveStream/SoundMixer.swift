package import RTP

/// Adds up the sound of all tracks, each sample at its time of capture.
///
/// What nobody says is silence, so the sum never ends and never stalls.
package struct SoundMixer {
    /// In hertz.
    package static let rate = 48_000
    /// Samples that come at the same time, left and right one behind the other.
    package static let channels = 2
    /// Tracks that are added up; sound of further ones is left out.
    package static let trackLimit = 64

    private struct Track {
        /// Interleaved; a circle indexed by the number of the sample since the beginning.
        var samples: [Float]
        /// The sample behind the last one that came.
        var end: Int64?
    }

    /// What a track may be ahead; also the circle's size.
    private static let capacity = rate * 2
    /// A track whose times drift by less than this goes on without a seam.
    private static let slack = Int64(rate / 50)

    private let origin: Instant
    private var tracks: [UInt32: Track] = [:]
    /// The next sample to be taken.
    private var position: Int64 = 0

    /// - Parameter origin: when the first sample was captured.
    package init(origin: Instant) { self.origin = origin }

    /// Keeps what was captured from `instant` on: left and right samples, interleaved.
    ///
    /// What is too late, or more than two seconds ahead, is left out.
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

    /// How many samples there are in a time of any length: at most 4.5 * 10^14, as Int64 has
    /// 9.3 * 10^9 seconds in nanoseconds.
    private static func samples(_ nanoseconds: Int64) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let rate = Int64(Self.rate)
        return seconds &* rate &+ rest &* rate / 1_000_000_000
    }

    /// Silences what has come of a track.
    package mutating func forget(_ number: UInt32) { tracks[number] = nil }

    /// Takes the next samples, left ones and then as many right ones, each from -1 to 1.
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

    /// Bends what is loud, so that several who speak at one time do not crackle.
    private static func limited(_ sample: Float) -> Float {
        let knee: Float = 0.7
        let size = abs(sample)
        guard size > knee else { return sample }
        let over = (size - knee) / (1 - knee)
        let bent = knee + (1 - knee) * over / (1 + over)
        return sample < 0 ? -bent : bent
    }
}
