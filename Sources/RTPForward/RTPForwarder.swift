import CKernel
package import RTP
package import SFU
package import WorkerInterface

/// RTP forward of one stream, in the tap thread.
package struct RTPForwarder {
    fileprivate struct Line {
        let line: RTPForwardTarget.Line
        var sender: PlainRTPSender
        let rtp: ConnectedUDPSocket
        let rtcp: ConnectedUDPSocket
        /// Time of the last keyframe request to the publisher.
        var askedAt: Instant?
        var receiver = ReceiverState()
    }

    /// State of the receiver; a receiver that starts late needs a keyframe.
    fileprivate enum ReceiverState {
        case nobody(refusedAt: Instant, sentSince: Int)
        case somebody
        /// The receiver is new and has missed the last keyframe.
        case newcomer

        init() { self = .somebody }
    }

    package let setup: OutputSetup
    private let output: RTPForwardTarget
    private var lines: [PublicationID: Line] = [:]
    private(set) var counts = RTPForwardCounts()
    /// Counts as last reported.
    private var lastReported = RTPForwardCounts()
    /// Reason word for its end, once it has failed.
    package private(set) var failure: String?
    private var buffer = [UInt8](repeating: 0, count: 1_500)

    /// Minimum interval between keyframe requests.
    private static let keyframeRequestMilliseconds: Int64 = 1_000
    /// Time and packets without ECONNREFUSED after which a receiver is assumed to listen.
    fileprivate static let listeningMilliseconds: Int64 = 300
    fileprivate static let listeningPackets = 4
    /// Datagrams read from one receiver per turn.
    private static let readLimit = 16

    package init(_ setup: OutputSetup, _ output: RTPForwardTarget) {
        self.setup = setup
        self.output = output
    }

    /// Returns the counts if they have changed since the last call.
    package mutating func takeCounts() -> RTPForwardCounts? {
        guard counts != lastReported else { return nil }
        lastReported = counts
        return counts
    }
}

// Input from the room.
extension RTPForwarder {
    package mutating func attach(_ track: OutputTrack) {
        guard let line = output.line(track.kind) else { return }
        let above = line.address.with(port: line.address.port &+ 1)
        guard let rtp = ConnectedUDPSocket(to: line.address),
            let rtcp = ConnectedUDPSocket(to: above)
        else {
            failure = "unreachable"
            return
        }
        lines[track.publication] = Line(
            line: line,
            sender: PlainRTPSender(line, cname: output.stream),
            rtp: rtp,
            rtcp: rtcp
        )
    }

    package mutating func detach(_ id: PublicationID) {
        guard let line = lines.removeValue(forKey: id) else { return }
        _ = line.rtcp.send(line.sender.goodbye)
    }

    /// Sends an RTCP BYE to all receivers.
    package mutating func end() {
        for id in Array(lines.keys) { detach(id) }
    }

    package mutating func gate(_ id: PublicationID, open: Bool) {
        if !open { lines[id]?.sender.mute() }
    }

    package mutating func receive(_ packet: TapPacket, at now: Instant) {
        guard var line = lines[packet.publication] else { return }
        guard packet.codec == line.line.codec else {
            // The session description that receivers have no longer applies.
            failure = "codec-changed"
            return
        }
        guard let bytes = line.sender.datagram(of: packet) else {
            lines[packet.publication] = line
            return
        }
        switch line.rtp.send(bytes) {
        case .sent:
            counts.packets += 1
            counts.bytes += UInt64(bytes.count)
            line.receiver.sent(at: now)
        case .refused:
            counts.refused += 1
            line.receiver = .nobody(refusedAt: now, sentSince: 0)
        case .dropped: counts.dropped += 1
        }
        lines[packet.publication] = line
    }

    /// Sends due RTCP reports and handles receivers' feedback.
    ///
    /// - Returns: the encodings of which a keyframe is needed.
    package mutating func expire(
        at now: Instant,
        unixNanoseconds: Int64
    ) -> [(PublicationID, position: Int)] {
        var wishes: [(PublicationID, position: Int)] = []
        for id in lines.keys.sorted(by: { $0.index < $1.index }) {
            guard var line = lines[id] else { continue }
            line.sender.expire(at: now)
            if let report = line.sender.report(at: now, unixNanoseconds: unixNanoseconds) {
                _ = line.rtcp.send(report)
            }
            if requestsKeyframe(at: line.rtcp, line.sender) { line.receiver = .newcomer }
            if let position = neededKeyframe(of: line),
                line.mayAsk(at: now, every: Self.keyframeRequestMilliseconds)
            {
                line.askedAt = now
                if case .newcomer = line.receiver { line.receiver = .somebody }
                wishes.append((id, position))
            }
            lines[id] = line
        }
        return wishes
    }

    private func neededKeyframe(of line: Line) -> Int? {
        if let position = line.sender.neededKeyframe { return position }
        guard line.line.kind == .video, case .newcomer = line.receiver else { return nil }
        return line.sender.position
    }

    private mutating func requestsKeyframe(
        at socket: ConnectedUDPSocket,
        _ sender: PlainRTPSender
    ) -> Bool {
        var isWanted = false
        for _ in 0..<Self.readLimit {
            guard let length = socket.receive(into: &buffer) else { break }
            let bytes = buffer.span.extracting(0..<length)
            if sender.requestsKeyframe(by: bytes) { isWanted = true }
        }
        return isWanted
    }
}

extension RTPForwarder.Line {
    fileprivate func mayAsk(at now: Instant, every milliseconds: Int64) -> Bool {
        askedAt.map { $0.advanced(milliseconds: milliseconds) <= now } ?? true
    }
}

extension RTPForwarder.ReceiverState {
    /// Notes a packet that the system accepted, which does not yet prove a listener.
    fileprivate mutating func sent(at now: Instant) {
        guard case .nobody(let refused, let sent) = self else { return }
        let isEnough =
            sent + 1 >= RTPForwarder.listeningPackets
            && now.milliseconds(since: refused) >= RTPForwarder.listeningMilliseconds
        self = isEnough ? .newcomer : .nobody(refusedAt: refused, sentSince: sent + 1)
    }
}
