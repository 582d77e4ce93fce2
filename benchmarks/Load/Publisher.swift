import LoadPeer
import RTP
import SFU
import Sockets

/// What the publisher has sent and was asked for.
struct PublisherTally: Sendable {
    var audioPackets: UInt64 = 0
    var videoPackets: UInt64 = 0
    var videoFrames: UInt64 = 0
    var keyframes: UInt64 = 0
    /// Bytes of whole SRTP packets, retransmissions left out.
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

/// The publisher's media: Opus and VP8 packets on schedule, keyframes on demand, reports, RTX.
struct Publisher {
    private(set) var tally = PublisherTally()
    private let sources: PublishedSources
    private let rtpOverhead: Int
    private var lossPercent: Int
    private var frames: FrameSizes
    private var packetizer = Packetizer()
    private var audio: Track
    private var video: Track
    private var nextAudio: Instant
    private var nextFrame: Instant
    private var nextReport: Instant
    private let start: Instant
    private let frameInterval: Int64
    private var frameCount: UInt32 = 0
    private var keyframeDue = true
    private var isStopped = false
    private var rtxIndex: UInt64 = 1

    /// One stream's numbers and counts, as its sender reports tell them.
    private struct Track {
        /// The packet index of RFC 3711 §3.3.1: it starts where the numbers wrap soon.
        var index: UInt64 = 65_000
        var packets: UInt32 = 0
        var octets: UInt32 = 0
        /// At the start, where it wraps soon.
        var firstTimestamp: UInt32

        /// Counts a packet of `length` bytes in clear.
        mutating func note(_ length: Int) {
            index += 1
            packets &+= 1
            octets &+= UInt32(length - Packetizer.headerLength)
        }
    }

    /// Starts the schedule at `now`.
    init(_ options: Options, _ sources: PublishedSources, rtpOverhead: Int, at now: Instant) {
        self.sources = sources
        self.rtpOverhead = rtpOverhead
        lossPercent = options.lossPercent
        frames = FrameSizes(bitrate: options.videoBitrate, frameRate: options.frameRate)
        audio = Track(firstTimestamp: 0 &- UInt32(5 * Wire.audioClock))
        video = Track(firstTimestamp: 0 &- UInt32(5 * Wire.videoClock))
        start = now
        nextAudio = now
        nextFrame = now
        nextReport = now
        frameInterval = 1_000_000_000 / Int64(options.frameRate)
    }

    /// When `expire` next has something to do; `nil` once it has stopped.
    var deadline: Instant? { isStopped ? nil : min(nextAudio, nextFrame, nextReport) }

    /// Throws nothing more away.
    mutating func stopLosing() { lossPercent = 0 }

    /// Sends nothing more of its own; what sfud misses it still sends again.
    mutating func stop() { isStopped = true }

    /// Sends what is due; the batch has room for `FrameSizes.maximumPackets` and a few more.
    mutating func expire(at now: Instant, _ peer: inout LoadPeer, into output: inout Batch) {
        if nextAudio <= now { sendAudio(&peer, into: &output) }
        if nextFrame <= now { sendFrame(&peer, into: &output) }
        if nextReport <= now { sendReports(at: now, &peer, into: &output) }
    }

    private mutating func sendAudio(_ peer: inout LoadPeer, into output: inout Batch) {
        let elapsed = nextAudio.nanoseconds(since: start)
        let timestamp = audio.firstTimestamp &+ Self.units(elapsed, clock: Wire.audioClock)
        let stamp = Stamp(
            sent: Instant.monotonic().nanoseconds,
            index: audio.packets,
            frame: audio.packets,
            timestamp: timestamp,
            length: Wire.audioPayload,
            endsFrame: false
        )
        let packet = packetizer.audio(
            stamp,
            ssrc: sources.audio,
            sequence: UInt16(truncatingIfNeeded: audio.index)
        )
        peer.sendRTP(packet.span, index: audio.index, into: &output)
        audio.note(packet.count)
        tally.audioPackets += 1
        nextAudio = nextAudio.advanced(nanoseconds: Wire.audioInterval)
    }

    private mutating func sendFrame(_ peer: inout LoadPeer, into output: inout Batch) {
        let isKeyframe = keyframeDue
        keyframeDue = false
        let elapsed = nextFrame.nanoseconds(since: start)
        let timestamp = video.firstTimestamp &+ Self.units(elapsed, clock: Wire.videoClock)
        let lengths = frames.next(isKeyframe: isKeyframe)
        for (position, length) in lengths.enumerated() {
            let stamp = Stamp(
                sent: Instant.monotonic().nanoseconds,
                index: video.packets,
                frame: frameCount,
                timestamp: timestamp,
                length: length,
                endsFrame: position + 1 == lengths.count
            )
            let packet = packetizer.video(
                stamp,
                ssrc: sources.video,
                sequence: UInt16(truncatingIfNeeded: video.index),
                startsFrame: position == 0,
                isKeyframe: isKeyframe
            )
            if frames.random(100) < lossPercent {
                tally.thrownAway += 1
            } else {
                peer.sendRTP(packet.span, index: video.index, into: &output)
            }
            video.note(packet.count)
            tally.largestPacket = max(tally.largestPacket, packet.count + rtpOverhead)
            tally.videoPackets += 1
            tally.videoBytes += UInt64(packet.count + rtpOverhead)
        }
        frameCount &+= 1
        tally.videoFrames += 1
        if isKeyframe { tally.keyframes += 1 }
        nextFrame = nextFrame.advanced(nanoseconds: frameInterval)
    }

    private mutating func sendReports(
        at now: Instant,
        _ peer: inout LoadPeer,
        into output: inout Batch
    ) {
        let ntp = NTPTime(unixNanoseconds: now.nanoseconds &+ wallClockOffset())
        let elapsed = now.nanoseconds(since: start)
        let reports = [
            report(sources.audio, audio, elapsed, ntp, clock: Wire.audioClock),
            report(sources.video, video, elapsed, ntp, clock: Wire.videoClock),
        ]
        let ssrc = SSRC(rawValue: sources.audio)
        peer.sendRTCP(into: &output) { bytes in
            for report in reports { report.encode(into: &bytes) }
            SourceDescription.encode(ssrc: ssrc, cname: Array("load".utf8).span, into: &bytes)
        }
        nextReport = nextReport.advanced(milliseconds: 1_000)
    }

    private func report(
        _ ssrc: UInt32,
        _ track: Track,
        _ elapsed: Int64,
        _ ntp: NTPTime,
        clock: Int
    ) -> SenderReport {
        SenderReport(
            sender: SSRC(rawValue: ssrc),
            ntp: ntp,
            rtpTimestamp: track.firstTimestamp &+ Self.units(elapsed, clock: clock),
            packets: track.packets,
            octets: track.octets
        )
    }

    /// Timestamp units in `nanoseconds`, wrapped.
    private static func units(_ nanoseconds: Int64, clock: Int) -> UInt32 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let units = seconds * Int64(clock) + rest * Int64(clock) / 1_000_000_000
        return UInt32(truncatingIfNeeded: units)
    }
}

// What sfud reports and asks for.
extension Publisher {
    mutating func receive(
        report compound: Span<UInt8>,
        _ nacked: inout [SequenceNumber]
    ) {
        var blocks = RTCPBlocks(compound)
        while let block = blocks.next() {
            switch (block.type, block.count) {
            case (RTCPType.receiverReport, _): tally.receiverReports += 1
            case (RTCPType.transportFeedback, RTCPFormat.transportWide):
                tally.transportFeedback += 1
            case (RTCPType.transportFeedback, RTCPFormat.genericNACK):
                read(nack: block, &nacked)
            case (RTCPType.payloadFeedback, RTCPFormat.pictureLoss),
                (RTCPType.payloadFeedback, RTCPFormat.fullIntraRequest):
                tally.keyframeRequests += 1
                keyframeDue = true
            default: break
            }
        }
    }

    private mutating func read(nack block: RTCPBlock, _ nacked: inout [SequenceNumber]) {
        guard let nack = try? GenericNACK(block), nack.media.rawValue == sources.video else {
            return
        }
        for index in 0..<nack.count {
            let (first, mask) = nack[index]
            nacked.append(first)
            for bit in 0..<16 where mask & 1 << UInt16(bit) != 0 {
                nacked.append(first.advanced(by: bit + 1))
            }
        }
    }

    /// Sends what a NACK named, as far as it is still held (RFC 4588).
    mutating func resend(
        _ sequence: SequenceNumber,
        _ peer: inout LoadPeer,
        into output: inout Batch
    ) {
        tally.nackedPackets += 1
        guard output.free > 0,
            let packet = packetizer.retransmission(
                of: sequence.rawValue,
                ssrc: sources.rtx,
                sequence: UInt16(truncatingIfNeeded: rtxIndex)
            )
        else { return }
        peer.sendRTP(packet.span, index: rtxIndex, into: &output)
        rtxIndex += 1
        tally.retransmissions += 1
    }
}
