import RTP
import SFU
import WorkerInterface

/// Path to another node: its bandwidth, and the video that waits for its turn on it.
final class LinkPath {
    /// A packet that waits.
    struct Waiting {
        var publication: PublicationID
        var header: LinkedMediaHeader
        var bytes: [UInt8]
        var since: Instant

        /// Returns the record, with its ages at the time when it leaves.
        func record(at now: Instant) -> LinkRecord {
            let waited = Int64(now.nanoseconds(since: since) / 1_000)
            var header = header
            header.age = UInt32(clamping: Int64(header.age) &+ waited)
            if let age = header.capture?.age {
                header.capture?.age = Int32(clamping: Int64(age) &+ waited)
            }
            return .media(header, packet: bytes)
        }
    }

    var bandwidth: LinkBandwidth
    var arrivals = LinkArrivals()
    var shares = LinkShares()
    private(set) var waiting: [UInt32: Waiting] = [:]
    private var lastName: UInt32 = 0
    private var nextShare = Instant(nanoseconds: 0)

    init(at now: Instant) { bandwidth = LinkBandwidth(at: now) }

    /// Lets a video packet wait for its turn; returns whether there was room.
    func enqueue(_ packet: Waiting, isRepeated: Bool) -> Bool {
        lastName &+= 1
        let length = packet.bytes.count &+ LinkDatagram.overhead &+ LinkedMediaHeader.length
        guard
            bandwidth.enqueue(lastName, bytes: length, isRepeated: isRepeated, at: packet.since)
        else { return false }
        waiting[lastName] = packet
        return true
    }

    /// Takes the next packet whose turn has come; `nil` if there is none.
    func takeNext(at now: Instant) -> Waiting? {
        while let name = bandwidth.takeNext(at: now) {
            if let packet = waiting.removeValue(forKey: name) { return packet }
        }
        return nil
    }

    /// Drops what waits of a publication: a right to it was lost.
    func drop(_ publication: PublicationID) { drop(publication, except: 0) }

    /// Whether the path is to be shared now: a narrow one with each beat, and any once a second.
    func isShareDue(at now: Instant) -> Bool {
        guard bandwidth.limit != nil || nextShare <= now else { return false }
        nextShare = now.advanced(milliseconds: 1_000)
        return true
    }

    /// Drops what waits of a publication except some encodings, one bit each.
    func drop(_ publication: PublicationID, except encodings: UInt8) {
        guard !waiting.isEmpty else { return }
        waiting = waiting.filter { _, packet in
            packet.publication != publication || encodings & 1 << packet.header.position != 0
        }
        if waiting.isEmpty { bandwidth.clear() }
    }

    /// Time of the next work, if any.
    func deadline(at now: Instant) -> Instant? {
        [arrivals.deadline, bandwidth.deadline(at: now)].compactMap(\.self).min()
    }
}
