import Kernel
import LoadPeer
import RTP
import SFU

/// One participant's media: recordings on schedule, keyframes on request, sender reports, RTX.
final class Publisher {
    var tally = PublisherTally()
    let audio: SentTrack?
    let layers: [SentTrack]
    /// Video packets that are not sent on purpose, in percent.
    var lossPercent = 0
    let rids: [String?]
    let format: SendFormat
    private let frameInterval: Int64
    private let overhead: Int
    var packetizer = Packetizer()
    private var next: Schedule?
    private var start = Instant(nanoseconds: 0)
    /// Index of each layer's next frame in its recording, and the number of frames sent.
    var position: [Int]
    private var frameCounts: [UInt32]
    var rtxCounts: [UInt64]
    private var chance: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// Longest delay of media before it is skipped, in milliseconds.
    private static let patience: Int64 = 200

    private struct Schedule {
        var audio: Instant
        var frame: Instant
        var report: Instant
    }

    /// Creates a publisher.
    ///
    /// `overhead` is the SRTP overhead of a packet; `videos` are the recordings of the layers.
    init(
        _ publication: Publication,
        _ format: SendFormat,
        audio: Recording,
        videos: [Recording],
        frameRate: Int,
        overhead: Int
    ) {
        self.format = format
        self.overhead = overhead
        self.audio = publication.audio.map {
            SentTrack(.audio, ssrc: $0, rtxSSRC: 0, recording: audio)
        }
        layers = zip(publication.layers, videos).map { layer, recording in
            SentTrack(.video, ssrc: layer.ssrc, rtxSSRC: layer.rtxSSRC, recording: recording)
        }
        rids = publication.layers.map(\.rid)
        frameInterval = 1_000_000_000 / Int64(max(1, frameRate))
        position = layers.map { _ in 0 }
        frameCounts = layers.map { _ in 0 }
        rtxCounts = layers.map { _ in 1 }
    }

    /// Returns the tracks of one medium, one for each layer.
    func tracks(_ medium: Medium) -> [SentTrack] {
        medium == .video ? layers : audio.map { [$0] } ?? []
    }

    /// Starts the schedule.
    func begin(at now: Instant) {
        start = now
        next = Schedule(audio: now, frame: now, report: now)
    }

    /// Stops new media; retransmissions continue.
    func end() { next = nil }

    /// Time of the next `expire`; `nil` while nothing is published.
    var deadline: Instant? { next.map { min($0.audio, $0.frame, $0.report) } }

    /// Skips media that is overdue by more than 200 ms, as a camera does on an overloaded machine.
    ///
    /// Sending all of it would increase the delay.
    func skip(at now: Instant) {
        let oldest = now.advanced(milliseconds: -Self.patience)
        guard var due = next, min(due.audio, due.frame) < oldest else { return }
        while due.audio < oldest {
            due.audio = due.audio.advanced(nanoseconds: OfferParameters.audioInterval)
            tally.skipped += 1
        }
        while due.frame < oldest {
            due.frame = due.frame.advanced(nanoseconds: frameInterval)
            tally.skipped += 1
        }
        due.report = max(due.report, oldest)
        next = due
    }

    /// Sends due media and reports.
    func expire(at now: Instant, _ wire: inout ClientTransport, into output: inout Batch) {
        guard let due = next else { return }
        if due.audio <= now {
            sendAudio(due.audio, &wire, into: &output)
            next?.audio = due.audio.advanced(nanoseconds: OfferParameters.audioInterval)
        }
        if due.frame <= now {
            for layer in layers.indices { sendFrame(layer, due.frame, &wire, into: &output) }
            next?.frame = due.frame.advanced(nanoseconds: frameInterval)
        }
        if due.report <= now {
            sendReports(at: now, &wire, into: &output)
            next?.report = due.report.advanced(milliseconds: 1_000)
        }
    }

    private func sendAudio(_ due: Instant, _ wire: inout ClientTransport, into output: inout Batch)
    {
        guard let audio, let line = format.audio else { return }
        let frame = Int(audio.count) % audio.recording.frames.count
        let sent = audio.append(
            SentPacket(
                sentAt: Instant.monotonic().nanoseconds,
                timestamp: timestamp(due, clock: OfferParameters.audioClock),
                frame: Int32(frame),
                length: UInt16(audio.recording.frames[frame].length)
            )
        )
        send(sent, of: audio, rid: nil, line, &wire, into: &output)
        tally.audioPackets += 1
    }

    private func sendFrame(
        _ layer: Int,
        _ due: Instant,
        _ wire: inout ClientTransport,
        into output: inout Batch
    ) {
        guard let line = format.video else { return }
        let track = layers[layer]
        let frame = position[layer]
        position[layer] = (frame + 1) % track.recording.frames.count
        let cut = Packetizer.cut(track.recording.frames[frame].length)
        var offset = 0
        for part in 0..<cut.count {
            let length = part < cut.count - cut.longer ? cut.share : cut.share + 1
            let sent = track.append(
                SentPacket(
                    sentAt: Instant.monotonic().nanoseconds,
                    timestamp: timestamp(due, clock: OfferParameters.videoClock),
                    frame: Int32(frame),
                    offset: Int32(offset),
                    length: UInt16(length),
                    // Both wrap soon after the start.
                    pictureID: UInt16(truncatingIfNeeded: frameCounts[layer] &+ 32_700) & 0x7fff,
                    tl0PictureIndex: UInt8(truncatingIfNeeded: frameCounts[layer] &+ 200),
                    startsFrame: part == 0,
                    marker: part + 1 == cut.count
                )
            )
            offset += length
            tally.videoPackets += 1
            if isLost() {
                tally.withheld += 1
            } else {
                send(sent, of: track, rid: rids[layer], line, &wire, into: &output)
            }
        }
        frameCounts[layer] &+= 1
        tally.videoFrames += 1
        if frame == 0 { tally.keyframes += 1 }
    }

    func send(
        _ sent: SentPacket,
        of track: SentTrack,
        rid: String?,
        _ line: SendFormat.Line,
        _ wire: inout ClientTransport,
        into output: inout Batch
    ) {
        let index = UInt64(SentTrack.firstSequence + sent.index)
        let header = Packetizer.Header(
            payloadType: line.payloadType,
            ssrc: track.ssrc,
            sequence: UInt16(truncatingIfNeeded: index),
            line: line,
            rid: rid
        )
        packetizer.write(sent, of: track, header)
        wire.sendRTP(packetizer.packet.span, index: index, into: &output)
        let size = packetizer.packet.count + overhead
        tally.largestPacket = max(tally.largestPacket, size)
        if track.medium == .video { tally.videoBytes += UInt64(size) }
    }

    private func isLost() -> Bool {
        guard lossPercent > 0 else { return false }
        chance ^= chance << 13
        chance ^= chance >> 7
        chance ^= chance << 17
        return Int(truncatingIfNeeded: chance >> 33) % 100 < lossPercent
    }

    /// Returns the RTP timestamp; it starts five seconds before a wrap.
    func timestamp(_ time: Instant, clock: Int) -> UInt32 {
        let elapsed = time.nanoseconds(since: start)
        let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
        let units = seconds * Int64(clock) + rest * Int64(clock) / 1_000_000_000
        return (0 &- UInt32(5 * clock)) &+ UInt32(truncatingIfNeeded: units)
    }
}
