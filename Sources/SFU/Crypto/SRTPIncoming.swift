/// Roll-over counters and replay windows of incoming streams (RFC 3711 §3.3.1–2).
///
/// State changes only after a packet's tag is verified. Decisions match those of libsrtp2, which
/// does this itself in the other engine, except for `RolloverCounterSearch`.
@safe
struct SRTPIncoming: ~Copyable {
    /// State of one SSRC; its RTP and RTCP windows are two parts of `bits`.
    private struct Stream {
        var ssrc: UInt32
        /// Number of consecutive RTP packets that were refused.
        var refused: UInt32 = 0
        /// Highest authenticated RTCP index.
        var rtcpNewest: UInt32 = 0
        /// Highest authenticated RTP index, including the roll-over counter.
        var rtpNewest: UInt64 = 0
    }

    private var streams: UnsafeMutableBufferPointer<Stream>
    /// Replay windows: for each stream the words of RTP, then of RTCP.
    ///
    /// Bit `index` modulo the window's width is set if `index` was seen.
    private var bits: UnsafeMutableBufferPointer<UInt64>
    private(set) var count = 0
    private var latest = 0
    private let maxStreams: Int
    /// Copy of the highest indexes that outlives the process.
    var saved: SavedPlace?

    private static let rtpWords = SRTPSession.replayWindow / 64
    private static let rtcpWords = SRTPSession.rtcpReplayWindow / 64
    private static let wordsPerStream = rtpWords + rtcpWords
    /// A subscriber sends RTCP with one SSRC and no RTP.
    private static let firstCapacity = 1

    init(maxStreams: Int) {
        precondition(maxStreams > 0)
        let capacity = min(Self.firstCapacity, maxStreams)
        self.maxStreams = maxStreams
        unsafe streams = .allocate(capacity: capacity)
        unsafe bits = .allocate(capacity: capacity * Self.wordsPerStream)
    }

    deinit {
        unsafe streams.deallocate()
        unsafe bits.deallocate()
    }

    /// SSRC and index of a packet before its tag is verified.
    struct Candidate {
        /// Position of the stream, or `nil` for a new SSRC.
        fileprivate var place: Int?
        fileprivate var ssrc: UInt32
        var index: UInt64
    }

    /// Estimates the index of an RTP packet.
    ///
    /// Throws `streamLimit`, `replay`, or `exhausted` after 2^48 packets.
    mutating func rtpCandidate(
        _ ssrc: UInt32,
        sequence: UInt16
    ) throws(SRTPError) -> Candidate {
        guard let place = find(ssrc) else {
            guard count < maxStreams else { throw .streamLimit }
            return Candidate(place: nil, ssrc: ssrc, index: UInt64(sequence))
        }
        let newest = unsafe streams[place].rtpNewest
        let index = Self.estimate(sequence, after: newest)
        guard index < 1 << 48 else { throw .exhausted }
        let base = place * Self.wordsPerStream
        let isNew = isUnseen(index, newest: newest, width: SRTPSession.replayWindow, base: base)
        guard isNew else { throw .replay }
        return Candidate(place: place, ssrc: ssrc, index: index)
    }

    /// Returns a later index to try for a refused packet, as `RolloverCounterSearch` schedules it.
    mutating func laterCandidate(_ ssrc: UInt32, sequence: UInt16) -> Candidate? {
        guard let place = find(ssrc) else { return nil }
        let refused = unsafe streams[place].refused
        unsafe streams[place].refused = refused &+ 1
        guard let round = RolloverCounterSearch.round(after: refused) else { return nil }
        let newest = unsafe streams[place].rtpNewest
        let index = Self.estimate(sequence, after: newest) + UInt64(round) << 16
        guard index > newest, index < 1 << 48 else { return nil }
        return Candidate(place: place, ssrc: ssrc, index: index)
    }

    /// Checks the 31-bit index in an RTCP packet against the replay window.
    ///
    /// Throws `streamLimit` or `replay`.
    mutating func rtcpCandidate(_ ssrc: UInt32, index: UInt32) throws(SRTPError) -> Candidate {
        guard let place = find(ssrc) else {
            guard count < maxStreams else { throw .streamLimit }
            return Candidate(place: nil, ssrc: ssrc, index: UInt64(index))
        }
        let isNew = isUnseen(
            UInt64(index),
            newest: UInt64(unsafe streams[place].rtcpNewest),
            width: SRTPSession.rtcpReplayWindow,
            base: place * Self.wordsPerStream + Self.rtpWords
        )
        guard isNew else { throw .replay }
        return Candidate(place: place, ssrc: ssrc, index: UInt64(index))
    }

    /// Records an RTP packet whose tag is verified.
    mutating func acceptRTP(_ candidate: Candidate) {
        let place = candidate.place ?? append(candidate.ssrc)
        let base = place * Self.wordsPerStream
        let newest = unsafe streams[place].rtpNewest
        mark(candidate.index, newest: newest, width: SRTPSession.replayWindow, base: base)
        unsafe streams[place].rtpNewest = max(newest, candidate.index)
        unsafe streams[place].refused = 0
        save(place)
    }

    /// Records an RTCP packet whose tag is verified.
    mutating func acceptRTCP(_ candidate: Candidate) {
        let place = candidate.place ?? append(candidate.ssrc)
        let base = place * Self.wordsPerStream + Self.rtpWords
        let newest = UInt64(unsafe streams[place].rtcpNewest)
        mark(candidate.index, newest: newest, width: SRTPSession.rtcpReplayWindow, base: base)
        unsafe streams[place].rtcpNewest = UInt32(max(newest, candidate.index))
        save(place)
    }

    /// Removes the state of an SSRC.
    mutating func remove(_ ssrc: UInt32) {
        guard let place = find(ssrc) else { return }
        count -= 1
        unsafe streams[place] = streams[count]
        for word in 0..<Self.wordsPerStream {
            unsafe bits[place * Self.wordsPerStream + word] =
                bits[count * Self.wordsPerStream + word]
        }
        latest = 0
        if place < count { save(place) }
        saved?.noteCount(count)
    }

    /// Continues the streams of an earlier process: nothing at or below their newest index is
    /// accepted again.
    mutating func resume(_ stream: SavedTransport.Stream) {
        guard count < maxStreams, find(stream.ssrc) == nil else { return }
        let place = append(stream.ssrc)
        unsafe streams[place].rtpNewest = stream.rtpNewest
        unsafe streams[place].rtcpNewest = stream.rtcpNewest
        for word in 0..<Self.wordsPerStream {
            unsafe bits[place * Self.wordsPerStream + word] = .max
        }
        save(place)
    }

    private func save(_ place: Int) {
        guard let saved else { return }
        let stream = unsafe SavedTransport.Stream(
            rtpNewest: streams[place].rtpNewest,
            ssrc: streams[place].ssrc,
            rtcpNewest: streams[place].rtcpNewest
        )
        saved.note(stream, at: place)
    }

    private mutating func find(_ ssrc: UInt32) -> Int? {
        if latest < count, unsafe streams[latest].ssrc == ssrc { return latest }
        for place in 0..<count where unsafe streams[place].ssrc == ssrc {
            latest = place
            return place
        }
        return nil
    }

    private mutating func append(_ ssrc: UInt32) -> Int {
        if unsafe count == streams.count { grow() }
        unsafe streams.initializeElement(at: count, to: Stream(ssrc: ssrc))
        for word in 0..<Self.wordsPerStream {
            unsafe bits[count * Self.wordsPerStream + word] = 0
        }
        count += 1
        saved?.noteCount(count)
        return count - 1
    }

    private mutating func grow() {
        let capacity = unsafe min(2 * streams.count, maxStreams)
        let wider = UnsafeMutableBufferPointer<Stream>.allocate(capacity: capacity)
        let longer = UnsafeMutableBufferPointer<UInt64>.allocate(
            capacity: capacity * Self.wordsPerStream
        )
        _ = unsafe wider.update(fromContentsOf: streams)
        _ = unsafe longer.update(fromContentsOf: bits)
        unsafe streams.deallocate()
        unsafe bits.deallocate()
        unsafe streams = wider
        unsafe bits = longer
    }

    /// Estimates the index by RFC 3711 appendix A, except at the start of a stream.
    ///
    /// A stream within its first half cycle counts from 0, as no packet can precede that.
    private static func estimate(_ sequence: UInt16, after newest: UInt64) -> UInt64 {
        let half = 1 << 15
        guard newest > half else { return UInt64(sequence) }
        let last = Int(newest & 0xffff)
        var counter = newest >> 16
        if last < half {
            if Int(sequence) - last > half { counter -= 1 }
        } else if last - half > Int(sequence) {
            counter += 1
        }
        return counter << 16 | UInt64(sequence)
    }

    private func isUnseen(_ index: UInt64, newest: UInt64, width: Int, base: Int) -> Bool {
        if index > newest { return true }
        guard newest - index < UInt64(width) else { return false }
        let bit = Int(index & UInt64(width - 1))
        return unsafe bits[base + (bit >> 6)] >> UInt64(bit & 63) & 1 == 0
    }

    private mutating func mark(_ index: UInt64, newest: UInt64, width: Int, base: Int) {
        let mask = UInt64(width - 1)
        if index > newest {
            // Skipped indexes have not been seen.
            var passed = max(newest + 1, index >= mask ? index - mask : 0)
            while passed <= index {
                let bit = Int(passed & mask)
                unsafe bits[base + (bit >> 6)] &= ~(1 << UInt64(bit & 63))
                passed += 1
            }
        }
        let bit = Int(index & mask)
        unsafe bits[base + (bit >> 6)] |= 1 << UInt64(bit & 63)
    }
}
