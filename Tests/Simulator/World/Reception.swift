import RTP

/// A viewer's receiver for one stream: reorders packets, requests missing ones, and decodes from
/// keyframes on.
struct Reception {
    private struct Missing {
        var number: UInt16
        var since: Instant
        var asked = 0
        var askedAt: Instant
    }

    /// Longest wait of decodable video for missing packets, in milliseconds.
    private static let patience: Int64 = 400
    private static let mostMissing = 60
    private static let askingMilliseconds: Int64 = 60
    private static let mostAsked = 4

    let ssrc: UInt32
    private var newest: UInt16?
    private var next: UInt16 = 0
    /// Packets that arrived before earlier missing ones; empty packets have no mark.
    private var waiting: [UInt16: MediaMark?] = [:]
    private var missing: [Missing] = []
    private(set) var isDecoding = false
    private var pictureAskedAt = Instant(nanoseconds: .min / 2)
    /// Number of decodable frames.
    private(set) var frames = 0

    init(ssrc: UInt32) { self.ssrc = ssrc }

    /// Takes a packet; passes on the ends of displayable frames.
    mutating func take(
        _ number: UInt16,
        _ mark: MediaMark?,
        at now: Instant,
        seen: (MediaMark) -> Void
    ) {
        guard let newest else {
            self.newest = number
            next = number &+ 1
            return consume(mark, seen)
        }
        missing.removeAll { $0.number == number }
        let ahead = Int(Int16(bitPattern: number &- newest))
        if ahead > 0 {
            if ahead > 1, ahead <= Self.mostMissing {
                for step in 1..<ahead {
                    let lost = newest &+ UInt16(step)
                    missing.append(Missing(number: lost, since: now, askedAt: now))
                }
            }
            self.newest = number
            if ahead > Self.mostMissing { skip(to: number) }
        }
        guard Int16(bitPattern: number &- next) >= 0 else { return }
        waiting[number] = .some(mark)
        drain(seen)
    }

    private mutating func drain(_ seen: (MediaMark) -> Void) {
        while let mark = waiting.removeValue(forKey: next) {
            next &+= 1
            consume(mark, seen)
        }
    }

    private mutating func consume(_ mark: MediaMark?, _ seen: (MediaMark) -> Void) {
        guard let mark else { return }
        if mark.part.contains(.keyframe), mark.part.contains(.start) { isDecoding = true }
        guard isDecoding, mark.part.contains(.end) else { return }
        frames += 1
        seen(mark)
    }

    /// Continues after missing packets; only a keyframe can be decoded then.
    private mutating func skip(to number: UInt16) {
        for key in waiting.keys where Int16(bitPattern: key &- number) < 0 {
            waiting[key] = nil
        }
        missing.removeAll { Int16(bitPattern: $0.number &- number) < 0 }
        next = number
        isDecoding = false
    }

    /// Gives up on packets that have been missing for too long.
    mutating func expire(at now: Instant, seen: (MediaMark) -> Void) {
        guard let first = missing.first,
            now.milliseconds(since: first.since) > Self.patience
        else { return }
        let ahead = waiting.keys.min { $0 &- next < $1 &- next }
        skip(to: ahead ?? (newest ?? next) &+ 1)
        drain(seen)
    }

    /// Returns the numbers to request now, ascending.
    mutating func takeAsked(at now: Instant) -> [UInt16] {
        var asked: [UInt16] = []
        for index in missing.indices
        where missing[index].asked < Self.mostAsked
            && now.milliseconds(since: missing[index].askedAt) >= Self.askingMilliseconds
        {
            missing[index].asked += 1
            missing[index].askedAt = now
            asked.append(missing[index].number)
        }
        return asked.sorted { $0 &- next < $1 &- next }
    }

    /// Whether a keyframe has to be requested now.
    mutating func takesPictureLoss(at now: Instant) -> Bool {
        guard newest != nil, !isDecoding, now.milliseconds(since: pictureAskedAt) >= 500 else {
            return false
        }
        pictureAskedAt = now
        return true
    }

    var needsAttention: Bool { !missing.isEmpty || (newest != nil && !isDecoding) }
}
