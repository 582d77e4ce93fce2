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
/// Safe: it owns the memory, and `lists` gives only places within it.
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
    private var lists: PlaceLists
    private var lastOrder: UInt64 = 0
    private var damagedFrames: DamagedFrames

    package private(set) var count = 0
    /// Bytes of all queued datagrams.
    private(set) var bytes = 0
    private(set) var drops = SendDrops()

    /// Allocates a queue; `brokenFrames` is the number of damaged frames it tells apart, a power of
    /// two.
    package init(limits: SendQueueLimits, order: Order = .arrival, brokenFrames: Int = 4_096) {
        self.limits = limits
        self.order = order
        damagedFrames = DamagedFrames(capacity: brokenFrames)
        lists = PlaceLists(capacity: limits.datagrams)
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: limits.datagrams * Batch.stride,
            alignment: 64
        )
        unsafe bytesAt = memory.bindMemory(
            to: UInt8.self,
            capacity: limits.datagrams * Batch.stride
        )
        unsafe entries = .allocate(capacity: limits.datagrams)
    }

    deinit {
        unsafe bytesAt.deallocate()
        unsafe entries.deallocate()
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
        let place = lists.take()
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
        lists.append(place, to: content, tag: frame.tag)
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
        var heads = self.heads
        var staged = 0
        while staged < limit, staging.free > 0 {
            guard let place = first(of: heads) else { break }
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
            let next = lists.next(after: place)
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
            guard let place = first(of: heads) else { return }
            remove(place)
        }
    }

    /// Drops stale datagrams.
    package mutating func expire(at now: Instant) {
        for content in DatagramContent.allCases {
            while let place = lists.first(of: content), staleTime(of: place) <= now {
                dropFrame(at: place, .stale, at: now)
            }
        }
    }

    /// Time at which `expire` has something to do; `nil` if nothing is queued.
    var deadline: Instant? {
        var earliest: Instant?
        for content in DatagramContent.allCases {
            guard let place = lists.first(of: content) else { continue }
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
            var following = lists.first(of: content)
            while let place = following {
                following = lists.next(after: place)
                if unsafe lost.contains(entries[place].frame.ssrc) {
                    drops[.withdrawn, content] &+= 1
                    remove(place)
                }
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
        if let place = lists.first(of: .video) { return place }
        guard content != .video else { return nil }
        if let place = lists.first(of: .audio) { return place }
        return content == .other ? lists.first(of: .other) : nil
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
        var following: Int? = place
        while let place = following {
            let next = lists.next(after: place)
            if lists.tag(of: place) == tag, unsafe entries[place].frame == entry.frame {
                drops[cause, entry.content] &+= 1
                remove(place)
            }
            following = next
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

// Order of leaving.
extension SendQueue {
    /// First place of each list.
    private typealias Heads = (video: Int?, audio: Int?, other: Int?)

    private var heads: Heads {
        (lists.first(of: .video), lists.first(of: .audio), lists.first(of: .other))
    }

    /// Returns the head that leaves first.
    private func first(of heads: Heads) -> Int? {
        switch order {
        case .arrival: earlier(earlier(heads.video, heads.audio), heads.other)
        case .importance: heads.other ?? heads.audio ?? heads.video
        }
    }

    private func earlier(_ left: Int?, _ right: Int?) -> Int? {
        guard let left else { return right }
        guard let right else { return left }
        return unsafe entries[left].order < entries[right].order ? left : right
    }

    private mutating func remove(_ place: Int) {
        let entry = unsafe entries[place]
        lists.remove(place, from: entry.content)
        count -= 1
        bytes -= entry.length
    }
}
