import RTP

/// Reference times of a peer's receivers, which reports answer.
///
/// A browser sends one for each stream that it receives, at most once a second, and asks for a lost
/// packet again after the round trip that it learns from the answers; without them it takes 100 ms
/// (libwebrtc), whatever the path.
struct ReceiverTimes {
    private struct Entry: BitwiseCopyable {
        var ssrc = SSRC(rawValue: 0)
        /// Middle 32 bits of the receiver's clock.
        var reference: UInt32 = 0
        var arrived = Instant(nanoseconds: 0)
    }

    /// Number of receivers that are answered at a time; of more, those heard last are.
    static let capacity = 4
    /// Nanoseconds for which a reference time is answered again; browsers send one for sound about
    /// every five seconds, and forget the round trip with a report of it without an answer.
    private static let memory: Int64 = 6_000_000_000

    private var entries = [4 of Entry](repeating: Entry())
    private var count = 0

    /// Notes a reference time; it takes the place of an earlier one of the same receiver.
    mutating func note(_ time: ReceiverReferenceTime, at now: Instant) {
        var place = 0
        while place < count, entries[place].ssrc != time.sender { place &+= 1 }
        if place == Self.capacity {
            place = 0
            for other in 1..<count where entries[other].arrived < entries[place].arrived {
                place = other
            }
        }
        entries[place] = Entry(ssrc: time.sender, reference: time.ntp.compact, arrived: now)
        count = max(count, place &+ 1)
    }

    /// Returns the answers to the reference times of the last six seconds, each with its age.
    mutating func answers(at now: Instant) -> UncountedArray<LastReceiverTime> {
        var answers = UncountedArray<LastReceiverTime>(capacity: count)
        for place in 0..<count {
            let passed = max(0, now.nanoseconds(since: entries[place].arrived))
            guard passed < Self.memory else { continue }
            answers.append(
                LastReceiverTime(
                    receiver: entries[place].ssrc,
                    reference: entries[place].reference,
                    delay: UInt32(clamping: passed / 1_000 &* 65_536 / 1_000_000)
                )
            )
        }
        if answers.isEmpty { count = 0 }
        return answers
    }
}
