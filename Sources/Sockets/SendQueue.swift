package import RTP
package import SFU
package import WorkerInterface

/// Limits of one socket's send queue.
package struct SendQueueLimits: Hashable, Sendable {
    /// Maximum number of datagrams; each takes `Batch.stride` bytes once it has been needed.
    package var datagrams: Int
    package var bytes: Int

    package init(datagrams: Int = 4_096, bytes: Int = 4 << 20) {
        self.datagrams = datagrams
        self.bytes = bytes
    }
}

/// Bounded queue of datagrams that a socket did not take at once.
///
/// When it is full, video is dropped before audio and audio before transport signalling, the oldest
/// first and whole frames at a time: the rest of a damaged frame is useless, so it is dropped when
/// it comes. Stale media and media without permission leave the queue.
///
/// It is empty unless a socket refuses datagrams, so a healthy daemon never touches its memory.
/// Safe: it owns the places, and links lead only from one used place to another.
@safe
package struct SendQueue: ~Copyable {
    /// Queued datagram; its index is that of its bytes.
    private struct Entry {
        var frame: MediaFrame
        var content: DatagramContent
        var length: Int
        var since: Instant
        /// Serial number in the order of arrival.
        var order: UInt64
    }

    /// Links to the datagrams of the same content before and after; -1 for none.
    private struct Link {
        var previous: Int32
        var next: Int32
        var tag: UInt32
    }

    private struct Ends {
        var first: Int32 = -1
        var last: Int32 = -1
    }

    /// Order in which queued datagrams leave.
    package enum Order {
        /// Order of arrival.
        case arrival
        /// Signalling first, then audio, then video, each in order of arrival.
        ///
        /// For connections that are slow for long, on which audio must not queue behind video.
        case importance
    }

    private let limits: SendQueueLimits
    private let order: Order
    private let bytesAt: UnsafeMutablePointer<UInt8>
    private let entries: UnsafeMutablePointer<Entry>
    private let links: UnsafeMutablePointer<Link>
    /// Number of places used so far, some free again; memory above was never touched.
    private var untouched = 0
    private var firstFree: Int32 = -1
    private var video = Ends()
    private var audio = Ends()
    private var other = Ends()
    private var lastOrder: UInt64 = 0
    private var damagedFrames: DamagedFrames

    package private(set) var count = 0
    /// Bytes of all queued datagrams.
    private(set) var bytes = 0
    private(set) var drops = SendDrops()

    /// Allocates a queue; `brokenFrames` is the number of damaged frames it tells apart, a power of
    /// two.
    package init(limits: SendQueueLimits, order: Order = .arrival, brokenFrames: Int = 4_096) {
        precondition(limits.datagrams > 0 && limits.datagrams < Int(Int32.max))
        self.limits = limits
        self.order = order
        damagedFrames = DamagedFrames(capacity: brokenFrames)
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: limits.datagrams * Batch.stride,
            alignment: 64
        )
        unsafe bytesAt = memory.bindMemory(
            to: UInt8.self,
            capacity: limits.datagrams * Batch.stride
        )
        unsafe entries = .allocate(capacity: limits.datagrams)
        unsafe links = .allocate(capacity: limits.datagrams)
    }

    deinit {
        unsafe bytesAt.deallocate()
        unsafe entries.deallocate()
        unsafe links.deallocate()
    }

    package var isEmpty: Bool { count == 0 }

    /// Fill level by number or by bytes, whichever is higher, 0 to 1.
    var fill: Double {
        max(Double(count) / Double(limits.datagrams), Double(bytes) / Double(limits.bytes))
    }

    /// Whether the rest of a damaged frame may still have to be dropped.
    func isWatching(at now: Instant) -> Bool { !damagedFrames.isEmpty(at: now) }

    /// Whether nothing is queued and no damaged frame is remembered, so that its memory can be
    /// freed.
    func isIdle(at now: Instant) -> Bool { isEmpty && !isWatching(at: now) }

    /// Appends a datagram or drops it; others may be dropped to make room.
    package mutating func append(
        _ datagram: Span<UInt8>,
        to path: Path,
        as content: DatagramContent,
        at now: Instant
    ) {
        let frame = Self.frame(datagram, to: path, as: content)
        let isMedia = content != .other
        if isMedia, damagedFrames.contains(frame, at: now) { return countBroken(content) }
        guard makeRoom(for: datagram.count, of: content, at: now) else {
            if isMedia { markDamaged(frame, at: now) }
            return countBroken(content)
        }
        // The datagrams dropped to make room may belong to this very frame.
        if isMedia, damagedFrames.contains(frame, at: now) { return countBroken(content) }
        lastOrder += 1
        let place = takePlace()
        unsafe datagram.withUnsafeBufferPointer { source in
            guard let start = source.baseAddress else { return }
            unsafe (bytesAt + place * Batch.stride).update(from: start, count: source.count)
        }
        let entry = Entry(
            frame: frame,
            content: content,
            length: datagram.count,
            since: now,
            order: lastOrder
        )
        unsafe (entries + place).initialize(to: entry)
        link(place, as: content, tag: frame.tag)
        count += 1
        bytes += datagram.count
    }

    /// Whether `datagram` belongs to a frame that has lost a part here.
    func isBroken(
        _ datagram: Span<UInt8>,
        to path: Path,
        as content: DatagramContent,
        at now: Instant
    ) -> Bool {
        guard content != .other else { return false }
        return damagedFrames.contains(MediaFrame(datagram, to: path), at: now)
    }

    /// Counts a dropped datagram: of a damaged frame, or without room in the queue.
    mutating func countBroken(_ content: DatagramContent) { drops[.full, content] &+= 1 }

    /// Copies the datagrams that leave next to `staging`, as long as they share a path.
    ///
    /// They stay queued until `removeFirst` is called. Returns the number copied.
    package func stage(into staging: inout Batch, limit: Int) -> Int {
        var heads = (video: video.first, audio: audio.first, other: other.first)
        var staged = 0
        while staged < limit, staging.free > 0 {
            let place = first(of: heads)
            guard place >= 0 else { break }
            let entry = unsafe entries[place]
            if staged > 0, staging.path(at: 0) != entry.frame.path { break }
            let source = unsafe Span(
                _unsafeStart: bytesAt + place * Batch.stride,
                count: entry.length
            )
            var target = staging.next
            for index in source.indices { target[index] = source[index] }
            staging.commit(length: entry.length, to: entry.frame.path, as: entry.content)
            staged += 1
            let next = unsafe links[place].next
            switch entry.content {
            case .video: heads.video = next
            case .audio: heads.audio = next
            case .other: heads.other = next
            }
        }
        return staged
    }

    /// Removes the `number` datagrams that leave first.
    package mutating func removeFirst(_ number: Int) {
        for _ in 0..<number {
            let place = first(of: (video.first, audio.first, other.first))
            guard place >= 0 else { return }
            remove(place)
        }
    }

    /// Drops stale datagrams.
    package mutating func expire(at now: Instant) {
        for content in DatagramContent.allCases {
            while let place = head(of: content), staleTime(of: place) <= now {
                dropFrame(at: place, .stale, at: now)
            }
        }
    }

    /// Time at which `expire` has something to do; `nil` if nothing is queued.
    var deadline: Instant? {
        var earliest: Instant?
        for content in DatagramContent.allCases {
            guard let place = head(of: content) else { continue }
            let time = staleTime(of: place)
            earliest = earliest.map { min($0, time) } ?? time
        }
        return earliest
    }

    /// Drops all media of these streams.
    package mutating func withdraw(_ streams: [SSRC]) {
        guard !isEmpty else { return }
        let lost = Set(streams)
        for content in [DatagramContent.audio, .video] {
            var place = ends(of: content).first
            while place >= 0 {
                let next = unsafe links[Int(place)].next
                if unsafe lost.contains(entries[Int(place)].frame.ssrc) {
                    drops[.withdrawn, content] &+= 1
                    remove(Int(place))
                }
                place = next
            }
        }
    }

    /// Returns how long a datagram may be queued, in ms.
    ///
    /// Later media is too late for a receiver's jitter buffer; audio buffers grow on a connection
    /// that is slow for long. Transport signalling is repeated by its own timers, which begin at
    /// about a second.
    private func maximumWait(_ content: DatagramContent) -> Int64 {
        switch (content, order) {
        case (.other, _): 1_000
        case (.audio, .importance): 500
        case (.audio, .arrival), (.video, _): 200
        }
    }
}

// Making room.
extension SendQueue {
    /// Returns whether there is room, if necessary after dropping other datagrams.
    private mutating func makeRoom(
        for length: Int,
        of content: DatagramContent,
        at now: Instant
    ) -> Bool {
        precondition(length <= Batch.stride)
        while count >= limits.datagrams || bytes + length > limits.bytes {
            guard let victim = victim(of: content) else { return false }
            dropFrame(at: victim, .full, at: now)
        }
        return true
    }

    /// Returns the oldest datagram of the least important content, which may be `content` at most.
    private func victim(of content: DatagramContent) -> Int? {
        if let place = head(of: .video) { return place }
        guard content != .video else { return nil }
        if let place = head(of: .audio) { return place }
        return content == .other ? head(of: .other) : nil
    }

    /// Drops all queued datagrams of the frame whose first one is at `place`.
    private mutating func dropFrame(at place: Int, _ cause: SendDrops.Cause, at now: Instant) {
        let entry = unsafe entries[place]
        guard entry.content != .other else {
            drops[cause, .other] &+= 1
            return remove(place)
        }
        let tag = entry.frame.tag
        markDamaged(entry.frame, at: now)
        var place = Int32(place)
        while place >= 0 {
            let link = unsafe links[Int(place)]
            if link.tag == tag, unsafe entries[Int(place)].frame == entry.frame {
                drops[cause, entry.content] &+= 1
                remove(Int(place))
            }
            place = link.next
        }
    }

    private mutating func markDamaged(_ frame: MediaFrame, at now: Instant) {
        damagedFrames.insert(frame, until: now.advanced(milliseconds: maximumWait(.video)))
    }

    private static func frame(
        _ datagram: Span<UInt8>,
        to path: Path,
        as content: DatagramContent
    ) -> MediaFrame {
        guard content != .other else {
            return MediaFrame(path: path, ssrc: SSRC(rawValue: 0), timestamp: 0)
        }
        return MediaFrame(datagram, to: path)
    }

    private func staleTime(of place: Int) -> Instant {
        let entry = unsafe entries[place]
        return entry.since.advanced(milliseconds: maximumWait(entry.content))
    }
}

// Places and links.
extension SendQueue {
    private func ends(of content: DatagramContent) -> Ends {
        switch content {
        case .video: video
        case .audio: audio
        case .other: other
        }
    }

    private mutating func setEnds(of content: DatagramContent, _ ends: Ends) {
        switch content {
        case .video: video = ends
        case .audio: audio = ends
        case .other: other = ends
        }
    }

    private func head(of content: DatagramContent) -> Int? {
        let first = ends(of: content).first
        return first < 0 ? nil : Int(first)
    }

    /// Returns the head that leaves first; -1 if there is none.
    private func first(of heads: (video: Int32, audio: Int32, other: Int32)) -> Int {
        switch order {
        case .arrival: Int(earlier(earlier(heads.video, heads.audio), heads.other))
        case .importance:
            Int(heads.other >= 0 ? heads.other : heads.audio >= 0 ? heads.audio : heads.video)
        }
    }

    private func earlier(_ left: Int32, _ right: Int32) -> Int32 {
        guard left >= 0 else { return right }
        guard right >= 0 else { return left }
        return unsafe entries[Int(left)].order < entries[Int(right)].order ? left : right
    }

    private mutating func takePlace() -> Int {
        guard firstFree >= 0 else {
            untouched += 1
            return untouched - 1
        }
        let place = Int(firstFree)
        firstFree = unsafe links[place].next
        return place
    }

    private mutating func link(_ place: Int, as content: DatagramContent, tag: UInt32) {
        var ends = ends(of: content)
        unsafe (links + place).initialize(to: Link(previous: ends.last, next: -1, tag: tag))
        if ends.last >= 0 {
            unsafe links[Int(ends.last)].next = Int32(place)
        } else {
            ends.first = Int32(place)
        }
        ends.last = Int32(place)
        setEnds(of: content, ends)
    }

    private mutating func remove(_ place: Int) {
        let entry = unsafe entries[place]
        let link = unsafe links[place]
        var ends = ends(of: entry.content)
        if link.previous >= 0 {
            unsafe links[Int(link.previous)].next = link.next
        } else {
            ends.first = link.next
        }
        if link.next >= 0 {
            unsafe links[Int(link.next)].previous = link.previous
        } else {
            ends.last = link.previous
        }
        setEnds(of: entry.content, ends)
        unsafe links[place].next = firstFree
        firstFree = Int32(place)
        count -= 1
        bytes -= entry.length
    }
}
