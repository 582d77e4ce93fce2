import RTP

/// Verification of one received stream against what the publisher sent.
///
/// The stream must be continuous: the difference between the SFU's numbers and the publisher's is
/// constant, except after a switch of the simulcast layer.
struct SlotCheck {
    let ssrc: UInt32
    let rtxSSRC: UInt32?
    let medium: Medium
    private let payloadType: UInt8
    /// The publisher's layers, or its audio.
    private let tracks: [SentTrack]
    private var tally = SlotTally()
    private var window = ReceivedWindow()
    private var reception: ReceptionState
    /// Track that the stream carries, with the offset of its numbers from the track's.
    private var current: (track: Int, distance: Distance)?
    private var burst = (start: Int64.min, count: UInt64(0))
    /// Time of the last packet, and the longest time without one.
    private(set) var latest: Instant?
    /// Time of the first packet.
    private(set) var earliest: Instant?
    private var pause: Int64 = 0

    private struct Distance: Equatable {
        /// Sequence number minus index in the track.
        var index: Int64
        var timestamp: UInt32
        var pictureID: UInt16
        var tl0PictureIndex: UInt8
    }

    init(_ stream: ReceivedStream, tracks: [SentTrack]) {
        medium = stream.medium
        ssrc = stream.ssrc
        rtxSSRC = stream.rtxSSRC
        payloadType = stream.payloadType
        self.tracks = tracks
        let clock =
            stream.medium == .audio ? OfferParameters.audioClock : OfferParameters.videoClock
        reception = ReceptionState(ssrc: stream.ssrc, clock: clock)
    }

    /// Counts until now.
    var total: SlotTally {
        var total = tally
        let track = current.map(\.track) ?? tracks.count - 1
        guard tracks.indices.contains(track) else { return total }
        let sent = tracks[track].count
        total.expected = UInt64(sent)
        if let highest = window.highest, let current {
            total.tail = UInt64(max(0, sent - 1 - (highest - current.distance.index)))
        } else {
            total.tail = UInt64(sent)
            total.silent = sent > 0 ? 1 : 0
        }
        return total
    }

    var received: UInt64 { tally.received }
    var gaps: UInt64 { tally.gaps }

    /// Counts a packet by its header, which SRTP does not encrypt.
    ///
    /// Returns the sent packet if everything visible is as expected; else the packet must be
    /// decrypted.
    mutating func count(
        _ packet: Packet,
        overhead: Int,
        at now: Instant
    ) -> SentPacket? {
        guard packet.payloadType.rawValue == payloadType else {
            tally.discontinuities += 1
            return nil
        }
        let number = window.extended(packet.sequenceNumber)
        switch window.note(number) {
        case .new(let skipped): tally.gaps += skipped
        case .late:
            tally.gaps -= 1
            tally.late += 1
        case .duplicate:
            tally.duplicates += 1
            return nil
        }
        tally.received += 1
        tally.bytes += UInt64(packet.bytes.count)
        reception.note(packet.timestamp, at: now)
        notePause(at: now)
        noteBurst(at: now)
        guard let current,
            let sent = tracks[current.track].packet(number - current.distance.index),
            sent.timestamp &+ current.distance.timestamp == packet.timestamp,
            sent.marker == packet.marker
        else { return nil }
        let length = tracks[current.track].prefix + Int(sent.length) + overhead
        // A padded packet has the padding bit and is longer.
        let isPadded = packet.bytes[0] & 0x20 != 0
        let found = packet.bytes.count - packet.headerLength
        return found == length || (isPadded && found > length) ? sent : nil
    }

    mutating func countUndecryptable() { tally.undecryptable += 1 }

    /// Checks a decrypted packet that was counted; returns the sent packet.
    mutating func check(_ packet: Packet) -> SentPacket? {
        tally.decrypted += 1
        let payload = packet.payload
        guard payload.count > 0 else {
            tally.padding += 1
            return nil
        }
        var content = payload
        var pictureID: UInt16 = 0
        var tl0PictureIndex: UInt8 = 0
        if medium == .video {
            guard let descriptor = VP8Descriptor(payload) else {
                tally.discontinuities += 1
                return nil
            }
            content = payload.extracting(descriptor.length..<payload.count)
            pictureID = descriptor.pictureID ?? 0
            tl0PictureIndex = descriptor.tl0PictureIndex ?? 0
        }
        let number = window.extended(packet.sequenceNumber)
        guard let (track, sent) = find(content, number) else {
            tally.discontinuities += 1
            return nil
        }
        let distance = Distance(
            index: number - sent.index,
            timestamp: packet.timestamp &- sent.timestamp,
            pictureID: medium == .audio ? 0 : (pictureID &- sent.pictureID) & 0x7fff,
            tl0PictureIndex: medium == .audio ? 0 : tl0PictureIndex &- sent.tl0PictureIndex
        )
        let isKeyframe =
            medium == .video && sent.startsFrame && content.count > 0 && content[0] & 1 == 0
        follow(track, distance, sent, isKeyframe: isKeyframe)
        return sent
    }

    /// Finds the sent packet with that content, first at its expected position, then anywhere.
    private func find(_ content: Span<UInt8>, _ number: Int64) -> (Int, SentPacket)? {
        if let current {
            let track = tracks[current.track]
            if let sent = track.packet(number - current.distance.index),
                track.matches(content, sent)
            {
                return (current.track, sent)
            }
        }
        for index in tracks.indices.reversed() {
            if let sent = tracks[index].find(content) { return (index, sent) }
        }
        return nil
    }

    private mutating func follow(
        _ track: Int,
        _ distance: Distance,
        _ sent: SentPacket,
        isKeyframe: Bool
    ) {
        if let current {
            guard track != current.track || distance != current.distance else { return }
            // A late packet from before a switch belongs to the previous layer.
            let skipped = current.distance.index - distance.index
            if track == current.track, isKeyframe, skipped > 0 {
                tally.resumptions += 1
                tally.skipped += UInt64(skipped)
            } else if track == current.track {
                tally.discontinuities += 1
            } else {
                tally.switches += 1
            }
        } else if medium == .video, sent.frame != 0 {
            // A decoder cannot decode a new stream before its first keyframe.
            tally.discontinuities += 1
        }
        current = (track, distance)
    }

    private mutating func notePause(at now: Instant) {
        earliest = earliest ?? now
        if let latest { pause = max(pause, now.nanoseconds(since: latest)) }
        latest = now
    }

    /// Returns the longest time without a packet since the last call, in nanoseconds.
    mutating func takePause(at now: Instant) -> Int64 {
        defer { pause = 0 }
        guard let latest else { return 0 }
        return max(pause, now.nanoseconds(since: latest))
    }

    private mutating func noteBurst(at now: Instant) {
        if now.nanoseconds - 1_000_000 > burst.start { burst = (now.nanoseconds, 0) }
        burst.count += 1
        tally.burst = max(tally.burst, burst.count)
    }
}

// Receiver reports.
extension SlotCheck {
    mutating func note(_ report: SenderReport, at now: Instant) {
        reception.senderReport = (report.ntp.compact, now)
    }

    mutating func takeReport(at now: Instant) -> ReceptionReport? {
        guard let highest = window.highest else { return nil }
        return reception.report(highest: highest, lost: tally.gaps, at: now)
    }
}
