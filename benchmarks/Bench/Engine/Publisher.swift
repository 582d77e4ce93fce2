import LoadPeer
import RTP
import SFU
import Sockets

/// What publishers have sent and were asked for.
struct PublisherTally: Sendable {
    var audioPackets: UInt64 = 0
    var videoPackets: UInt64 = 0
    var videoFrames: UInt64 = 0
    var keyframes: UInt64 = 0
    /// Bytes of whole SRTP packets of video, retransmissions left out.
    var videoBytes: UInt64 = 0
    var largestPacket = 0
    /// Video packets that were not sent when they should have been.
    var thrownAway: UInt64 = 0
    var retransmissions: UInt64 = 0
    /// Requests for a keyframe, PLI or FIR.
    var keyframeRequests: UInt64 = 0
    /// Packets that NACKs named.
    var nackedPackets: UInt64 = 0
    var transportFeedback: UInt64 = 0
    var receiverReports: UInt64 = 0
}

/// One participant's media: its recordings on schedule, keyframes on demand, reports, RTX.
final class Publisher {
    var tally = PublisherTally()
    let audio: SentTrack?
    let layers: [SentTrack]
    /// In percent of the video packets.
    var losing = 0
    private let rids: [String?]
    private let format: SendFormat
    private let frameInterval: Int64
    private let overhead: Int
    private var packetizer = Packetizer()
    private var next: Schedule?
    private var start = Instant(nanoseconds: 0)
    /// The frame of the recording that comes next, and the frames sent, of each layer.
    private var position: [Int]
    private var frameCounts: [UInt32]
    private var rtxCounts: [UInt64]
    private var chance: UInt64 = 0x9e37_79b9_7f4a_7c15

    private struct Schedule {
        var audio: Instant
        var frame: Instant
        var report: Instant
    }

    /// `overhead` is what SRTP adds to a packet; `videos` are the recordings of the layers.
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

    /// Tracks of one medium, a layer each.
    func tracks(_ medium: Medium) -> [SentTrack] {
        medium == .video ? layers : audio.map { [$0] } ?? []
    }

    /// Starts the schedule.
    func begin(at now: Instant) {
        start = now
        next = Schedule(audio: now, frame: now, report: now)
    }

    /// Sends nothing more of its own; what the SFU misses it still sends again.
    func end() { next = nil }

    /// When `expire` next has something to do; `nil` while nothing is published.
    var deadline: Instant? { next.map { min($0.audio, $0.frame, $0.report) } }

    /// Sends what is due.
    func expire(at now: Instant, _ wire: inout ClientWire, into output: inout Batch) {
        guard let due = next else { return }
        if due.audio <= now {
            sendAudio(due.audio, &wire, into: &output)
            next?.audio = due.audio.advanced(nanoseconds: Wire.audioInterval)
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

    private func sendAudio(_ due: Instant, _ wire: inout ClientWire, into output: inout Batch) {
        guard let audio, let line = format.audio else { return }
        let frame = Int(audio.count) % audio.recording.frames.count
        let sent = audio.append(
            SentPacket(
                sentAt: Instant.monotonic().nanoseconds,
                timestamp: timestamp(due, clock: Wire.audioClock),
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
        _ wire: inout ClientWire,
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
                    timestamp: timestamp(due, clock: Wire.videoClock),
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
                tally.thrownAway += 1
            } else {
                send(sent, of: track, rid: rids[layer], line, &wire, into: &output)
            }
        }
        frameCounts[layer] &+= 1
        tally.videoFrames += 1
        if frame == 0 { tally.keyframes += 1 }
    }

    private func send(
        _ sent: SentPacket,
        of track: SentTrack,
        rid: String?,
        _ line: SendFormat.Line,
        _ wire: inout ClientWire,
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
        guard losing > 0 else { return false }
        chance ^= chance << 13
        chance ^= chance >> 7
        chance ^= chance << 17
        return Int(truncatingIfNeeded: chance >> 33) % 100 < losing
    }

    /// At the start, where it wraps in five seconds, plus what has passed.
    private func timestamp(_ time: Instant, clock: Int) -> UInt32 {
        let elapsed = time.nanoseconds(since: start)
        let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
        let units = seconds * Int64(clock) + rest * Int64(clock) / 1_000_000_000
        return (0 &- UInt32(5 * clock)) &+ UInt32(truncatingIfNeeded: units)
    }
}

// Reports to the SFU, and what it asks for.
extension Publisher {
    private func sendReports(
        at now: Instant,
        _ wire: inout ClientWire,
        into output: inout Batch
    ) {
        let ntp = NTPTime(unixNanoseconds: now.nanoseconds &+ wallClockOffset())
        let reports = (tracks(.audio) + layers).map { track in
            SenderReport(
                sender: SSRC(rawValue: track.ssrc),
                ntp: ntp,
                rtpTimestamp: timestamp(
                    now,
                    clock: track.medium == .audio ? Wire.audioClock : Wire.videoClock
                ),
                packets: UInt32(truncatingIfNeeded: track.count),
                octets: track.octets
            )
        }
        guard let first = reports.first else { return }
        wire.sendRTCP(into: &output) { bytes in
            for report in reports { report.encode(into: &bytes) }
            SourceDescription.encode(
                ssrc: first.sender,
                cname: Array("load".utf8).span,
                into: &bytes
            )
        }
    }

    /// Takes a compound in clear, and answers it.
    func receive(
        _ compound: Span<UInt8>,
        _ wire: inout ClientWire,
        into output: inout Batch
    ) {
        var blocks = RTCPBlocks(compound)
        while let block = blocks.next() {
            switch (block.type, block.count) {
            case (RTCPType.receiverReport, _): tally.receiverReports += 1
            case (RTCPType.transportFeedback, RTCPFormat.transportWide):
                tally.transportFeedback += 1
            case (RTCPType.transportFeedback, RTCPFormat.genericNACK):
                resend(block, &wire, into: &output)
            case (RTCPType.payloadFeedback, RTCPFormat.pictureLoss):
                if let request = try? PictureLoss(block) { restart(request.media.rawValue) }
            case (RTCPType.payloadFeedback, RTCPFormat.fullIntraRequest):
                // Which layer it names matters little: requests come to one at a time.
                for layer in layers { restart(layer.ssrc) }
            default: break
            }
        }
    }

    /// Begins the layer anew, as its keyframe is the first of its frames.
    private func restart(_ ssrc: UInt32) {
        tally.keyframeRequests += 1
        for (index, layer) in layers.enumerated() where layer.ssrc == ssrc { position[index] = 0 }
    }

    private func resend(
        _ block: RTCPBlock,
        _ wire: inout ClientWire,
        into output: inout Batch
    ) {
        guard let nack = try? GenericNACK(block),
            let layer = layers.firstIndex(where: { $0.ssrc == nack.media.rawValue })
        else { return }
        for index in 0..<nack.count {
            let (first, mask) = nack[index]
            resend(first, layer, &wire, into: &output)
            for bit in 0..<16 where mask & 1 << UInt16(bit) != 0 {
                resend(first.advanced(by: bit + 1), layer, &wire, into: &output)
            }
        }
    }

    /// Sends again what is still remembered (RFC 4588).
    private func resend(
        _ sequence: SequenceNumber,
        _ layer: Int,
        _ wire: inout ClientWire,
        into output: inout Batch
    ) {
        tally.nackedPackets += 1
        let track = layers[layer]
        guard output.free > 0, let line = format.video, let payloadType = line.rtxPayloadType,
            let sent = track.packet(sequence: sequence.rawValue)
        else { return }
        let header = Packetizer.Header(
            payloadType: payloadType,
            ssrc: track.rtxSSRC,
            sequence: UInt16(truncatingIfNeeded: rtxCounts[layer]),
            line: line,
            rid: rids[layer],
            originalSequence: sequence.rawValue
        )
        packetizer.write(sent, of: track, header)
        wire.sendRTP(packetizer.packet.span, index: rtxCounts[layer], into: &output)
        rtxCounts[layer] += 1
        tally.retransmissions += 1
    }
}
