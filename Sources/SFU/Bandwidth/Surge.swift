/// What a queue that grew all at once says of the path that it stands before.
///
/// Where the path becomes much narrower, its queue is full before delays show a trend. But what
/// comes out of a queue comes at the path's own rate.
struct Surge {
    /// Nanoseconds of waiting that are no queue yet, and from which on one is sure.
    private static let idle: Int64 = 30_000_000
    private static let queued: Int64 = 100_000_000
    /// Nanoseconds after which a queue has not come all at once.
    private static let longest: Int64 = 500_000_000
    private static let shortest: Int64 = 60_000_000
    private static let fewestPackets = 8
    /// Nanoseconds of which at most a pace is made.
    private static let present: Int64 = 1_000_000_000
    /// A pause in which nothing came leaves packets as fast as they were sent.
    private static let narrow = 0.75
    /// Of what came out of the queue, so that it gets shorter.
    private static let share = 0.95

    private var bytes = 0
    private var count = 0
    private var firstSent: Int64 = 0
    private var firstArrived: Int64?
    /// The queue has stood for longer than what is looked at.
    private var isOld = false
    /// Bits a second that the path takes, if it has just become narrow.
    private(set) var rate: Double?
    /// Bits a second that have come out of the queue since it has stood, where that tells: a large
    /// frame after small ones comes at the path's pace, whatever was sent before.
    private(set) var pace: Double?

    /// Adds a packet that arrived, by two clocks that run alike, and how long it waited.
    mutating func add(bytes size: Int, sent: Int64, arrived: Int64, waited: Int64) {
        guard waited >= Self.idle, let began = firstArrived else {
            self = Surge()
            firstSent = sent
            firstArrived = arrived
            return
        }
        bytes += size
        count += 1
        let stretch = arrived - began
        let sending = sent - firstSent
        guard stretch <= Self.present else {
            let known = pace
            self = Surge()
            isOld = true
            firstSent = sent
            firstArrived = arrived
            return pace = known
        }
        if count >= Self.fewestPackets, stretch >= Self.shortest {
            pace = Double(bytes) * 8e9 / Double(stretch)
        }
        guard !isOld, waited >= Self.queued, count >= Self.fewestPackets,
            stretch >= Self.shortest, stretch <= Self.longest,
            Double(sending) < Self.narrow * Double(stretch)
        else {
            rate = nil
            return
        }
        rate = Self.share * Double(bytes) * 8e9 / Double(stretch)
    }

    /// It has been heeded, or compares with nothing that comes now.
    mutating func reset() { self = Surge() }
}
