import LoadPeer
import RTP
import SFU
import Sockets
import WorkerInterface

/// One client's transport with its publisher, its slots and its socket.
final class Client {
    let socket: UDPSocket
    /// Source address of its datagrams.
    let source: Address
    var wire: ClientTransport
    var publisher: Publisher?
    private(set) var slots: [SlotCheck] = []
    /// Frames of its first video, if it keeps them.
    private(set) var frames: VP8FrameAssembler?
    private(set) var retransmissions: UInt64 = 0
    /// RTP packets of unsignalled SSRCs.
    private(set) var unsignalledPackets: UInt64 = 0
    private(set) var senderReports: UInt64 = 0
    private(set) var undecryptableReports: UInt64 = 0
    private let ownSSRC: SSRC

    init(_ wire: consuming ClientTransport, socket: UDPSocket, source: Address, seed: UInt64) {
        self.wire = wire
        self.socket = socket
        self.source = source
        ownSSRC = SSRC(rawValue: UInt32(truncatingIfNeeded: seed))
    }

    /// Returns the longest time without a packet on some slot since the last call, in nanoseconds.
    func takeLongestPause(at now: Instant) -> Int64 {
        slots.indices.reduce(0) { max($0, slots[$1].takePause(at: now)) }
    }

    /// Returns the times of the first and the last packet of a medium.
    func times(of medium: Medium) -> (first: Instant?, last: Instant?) {
        let slots = slots.filter { $0.medium == medium }
        return (slots.compactMap(\.earliest).min(), slots.compactMap(\.latest).max())
    }

    func watch(_ slots: [SlotCheck], keepsFrames: Bool) {
        self.slots += slots
        if keepsFrames { frames = VP8FrameAssembler() }
    }

    /// Sends the queue with one datagram a call, as clients do; returns how many were refused.
    ///
    /// `other` is the source address if it is not the client's own.
    func send(_ output: inout Batch, from other: Address? = nil) -> UInt64 {
        var refused: UInt64 = 0
        for index in 0..<output.count {
            let run = output.run(from: index, limit: 1)
            if socket.send(run, of: output, source: other ?? source) != 0 { refused += 1 }
        }
        output.removeAll()
        return refused
    }

    /// Processes an RTP packet; decrypts a sample of packets and all unexpected ones.
    func receiveRTP(
        _ datagram: Span<UInt8>,
        _ viewing: inout ViewerStatistics,
        arrival: Instant,
        at now: Instant,
        into output: inout Batch
    ) {
        guard let packet = try? Packet(encrypted: datagram) else {
            unsignalledPackets += 1
            return
        }
        let ssrc = packet.ssrc.rawValue
        guard let slot = slots.firstIndex(where: { $0.ssrc == ssrc }) else {
            if slots.contains(where: { $0.rtxSSRC == ssrc }) {
                retransmissions += 1
            } else {
                unsignalledPackets += 1
            }
            return
        }
        let medium = slots[slot].medium
        let known = slots[slot].count(packet, overhead: wire.overhead, at: now)
        if let known {
            viewing.note(now.nanoseconds &- known.sentAt, medium)
            viewing.noteArrival(arrival.nanoseconds &- known.sentAt)
        }
        let isKept = frames != nil && medium == .video
        guard known == nil || isKept || viewing.takesSample() else { return }
        look(into: datagram, slot, at: now, output: &output)
    }

    private func look(
        into datagram: Span<UInt8>,
        _ slot: Int,
        at now: Instant,
        output: inout Batch
    ) {
        if wire.isPlaintext {
            let length = datagram.count - wire.overhead
            if length >= 12 { check(datagram.extracting(0..<length), slot) }
            return
        }
        guard case .rtp(let length) = wire.receive(datagram, at: now, into: &output) else {
            return slots[slot].countUndecryptable()
        }
        wire.peer.withDecrypted(length: length) { check($0, slot) }
    }

    private func check(_ clear: Span<UInt8>, _ slot: Int) {
        guard let packet = try? Packet(clear) else { return slots[slot].countUndecryptable() }
        _ = slots[slot].check(packet)
        if frames != nil, slots[slot].medium == .video { frames?.take(packet) }
    }

    /// Processes any datagram but RTP; returns its kind.
    func receive(
        _ datagram: Span<UInt8>,
        at now: Instant,
        into output: inout Batch
    ) -> LoadPeer.Received {
        let received = wire.receive(datagram, at: now, into: &output)
        switch received {
        case .undecryptable: undecryptableReports += 1
        case .rtcp(let length): takeCompound(wire.peer.clear(length: length), now, &output)
        case .nothing, .connected, .rtp, .failed: break
        }
        return received
    }

    private func takeCompound(_ clear: [UInt8], _ now: Instant, _ output: inout Batch) {
        publisher?.receive(clear.span, &wire, into: &output)
        guard !slots.isEmpty else { return }
        var blocks = RTCPBlocks(clear.span)
        while let block = blocks.next() {
            guard let report = try? SenderReport(block),
                let slot = slots.firstIndex(where: { $0.ssrc == report.sender.rawValue })
            else { continue }
            senderReports += 1
            slots[slot].note(report, at: now)
        }
    }

    /// Sends one receiver report on the slots, at most 31 of them.
    func sendReport(at now: Instant, into output: inout Batch) {
        var reports: [ReceptionReport] = []
        for index in slots.indices where reports.count < 31 {
            if let report = slots[index].takeReport(at: now) { reports.append(report) }
        }
        let ssrc = ownSSRC
        wire.sendRTCP(into: &output) { bytes in
            ReceiverReport.encode(sender: ssrc, reports: reports.span, into: &bytes)
            SourceDescription.encode(ssrc: ssrc, cname: Array("load".utf8).span, into: &bytes)
        }
    }
}

/// State shared by all viewers: sampling of packets, and latency histograms.
struct ViewerStatistics {
    private(set) var audio = LatencyHistogram()
    private(set) var video = LatencyHistogram()
    /// Time until the packet reached the client's socket, where it may still wait for the bench.
    private(set) var arrivals = LatencyHistogram()
    private let period: UInt64
    private var count: UInt64 = 0

    /// Decrypts every packet, or one in 64.
    init(everyPacket: Bool) { period = everyPacket ? 1 : 64 }

    mutating func takesSample() -> Bool {
        count &+= 1
        return count % period == 0
    }

    mutating func note(_ nanoseconds: Int64, _ medium: Medium) {
        if medium == .audio {
            audio.note(nanoseconds: nanoseconds)
        } else {
            video.note(nanoseconds: nanoseconds)
        }
    }

    mutating func noteArrival(_ nanoseconds: Int64) { arrivals.note(nanoseconds: nanoseconds) }

    mutating func forget() {
        arrivals = LatencyHistogram()
        audio = LatencyHistogram()
        video = LatencyHistogram()
    }
}
