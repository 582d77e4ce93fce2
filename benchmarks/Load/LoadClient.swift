import LoadPeer
import RTP
import SFU
import Sockets

/// One participant of the load: its socket, its WebRTC peer and, of a viewer, its slots.
final class LoadClient {
    let socket: UDPSocket
    var peer: LoadPeer
    private(set) var audio: SlotCheck
    private(set) var video: SlotCheck
    private let rtxSSRC: UInt32
    /// Retransmissions that nobody here asked for.
    private(set) var retransmissions: UInt64 = 0
    /// RTP of an SSRC that the answer does not name.
    private(set) var strangers: UInt64 = 0
    var queueDrops: UInt32 = 0
    private let ownSSRC: SSRC

    /// Opens the socket; `answer` names the slots.
    init(
        _ answer: Answer,
        identity: DTLSIdentity,
        context: SRTPContext,
        seed: UInt64
    ) throws(SystemError) {
        // Loopback, whatever is measured: a load never leaves the machine.
        socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        // For a viewer's share of a keyframe burst, and the loop's own pauses.
        _ = socket.setBuffers(UDPSocket.Buffers())
        peer = LoadPeer(
            identity: identity,
            context: context,
            path: Path(remote: answer.address, local: 0),
            seed: seed
        )
        audio = SlotCheck(.audio, ssrc: answer.audioSSRC ?? 0)
        video = SlotCheck(.video, ssrc: answer.videoSSRC ?? 0)
        rtxSSRC = answer.rtxSSRC ?? 0
        ownSSRC = SSRC(rawValue: UInt32(truncatingIfNeeded: seed))
    }

    deinit { socket.close() }

    /// Copies received, each counted once.
    var received: UInt64 { audio.tally.received + video.tally.received }

    /// Takes RTP, decrypting all of it or one packet in 64.
    func receiveRTP(
        _ datagram: Span<UInt8>,
        _ viewing: inout Viewing,
        at now: Instant,
        into output: inout Batch
    ) {
        guard let packet = try? Packet(encrypted: datagram) else {
            strangers += 1
            return
        }
        let medium: Medium
        switch packet.ssrc.rawValue {
        case audio.ssrc: medium = .audio
        case video.ssrc: medium = .video
        case rtxSSRC:
            retransmissions += 1
            return
        default:
            strangers += 1
            return
        }
        let isFirst = medium == .audio ? audio.isEmpty : video.isEmpty
        if medium == .audio { audio.count(packet, at: now) } else { video.count(packet, at: now) }
        guard viewing.takesSample() || isFirst else { return }
        decrypt(datagram, medium, &viewing, at: now, into: &output)
    }

    private func decrypt(
        _ datagram: Span<UInt8>,
        _ medium: Medium,
        _ viewing: inout Viewing,
        at now: Instant,
        into output: inout Batch
    ) {
        guard case .rtp(let length) = peer.receive(datagram, at: now, into: &output) else {
            if medium == .audio {
                audio.countUndecryptable()
            } else {
                video.countUndecryptable()
            }
            return
        }
        var sent: Int64?
        let filler = viewing.filler
        peer.withDecrypted(length: length) { clear in
            guard let packet = try? Packet(clear) else { return }
            sent =
                medium == .audio ? audio.check(packet, filler) : video.check(packet, filler)
        }
        if let sent { viewing.note(latency: now.nanoseconds &- sent) }
    }

    /// Reads sfud's sender reports, for the receiver reports.
    func receiveReport(_ compound: Span<UInt8>, at now: Instant) -> Int {
        var reports = 0
        var blocks = RTCPBlocks(compound)
        while let block = blocks.next() {
            guard let report = try? SenderReport(block) else { continue }
            reports += 1
            if report.sender.rawValue == audio.ssrc {
                audio.senderReport = (report.ntp.compact, now)
            } else if report.sender.rawValue == video.ssrc {
                video.senderReport = (report.ntp.compact, now)
            }
        }
        return reports
    }

    /// Sends a receiver report on both slots.
    func sendReport(at now: Instant, into output: inout Batch) {
        let reports = [audio.takeReport(at: now), video.takeReport(at: now)].compactMap { $0 }
        let ssrc = ownSSRC
        peer.sendRTCP(into: &output) { bytes in
            ReceiverReport.encode(sender: ssrc, reports: reports.span, into: &bytes)
            SourceDescription.encode(ssrc: ssrc, cname: Array("load".utf8).span, into: &bytes)
        }
    }
}

/// What all viewers share: which packets are looked into, and how long they took.
struct Viewing {
    let filler = Filler()
    /// Of the measured interval.
    private(set) var latency = LatencyHistogram()
    private(set) var sampled: UInt64 = 0
    var isMeasuring = false
    private let period: UInt64
    private var count: UInt64 = 0

    /// Looks into every packet, or into one in 64.
    init(everyPacket: Bool) { period = everyPacket ? 1 : 64 }

    mutating func takesSample() -> Bool {
        count &+= 1
        return count % period == 0
    }

    mutating func note(latency nanoseconds: Int64) {
        sampled += 1
        if isMeasuring { latency.note(nanoseconds: nanoseconds) }
    }
}
