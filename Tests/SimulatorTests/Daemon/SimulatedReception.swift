import HostilePeer
import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import Simulator
@testable import WorkerInterface

// Output.
extension SimulatedDaemon {
    /// Reads a media packet as its receiver will, the moment the core has written it.
    func written(_ bytes: [UInt8], to path: Path, by worker: Int) {
        guard case .rtp = Datagram(bytes.span), let client = clients[path] else { return }
        guard client.peer.isConnected else {
            let sequence = bytes.span.u16(at: 2)
            early.insert(Wire(path: path, ssrc: bytes.span.u32(at: 8), sequence: sequence))
            return
        }
        var unused = Batch(capacity: 1)
        guard case .rtp(let length) = client.peer.receive(bytes.span, at: now, into: &unused)
        else {
            Issue.record("a packet that its receiver cannot decrypt")
            return
        }
        let clear = client.peer.clear(length: length)
        guard let packet = try? Packet(clear.span) else {
            Issue.record("a packet that is none")
            return
        }
        let isRepeated = packet.payloadType.rawValue == SimulatedTrack.rtxPayloadType
        guard let mark = MediaMark(packet.payload) else {
            Issue.record("a packet without a mark")
            return
        }
        let sequence = packet.sequenceNumber.rawValue
        let ssrc = packet.ssrc.rawValue
        underWay[Wire(path: path, ssrc: ssrc, sequence: sequence)] = mark
        if !isRepeated {
            client.note(sequence, of: ssrc)
            let flow = flow(of: mark, to: client)
            flows[flow, default: Count()].written += 1
            noteHeard(mark, in: flow)
        } else {
            retransmissions += 1
        }
    }

    private func noteHeard(_ mark: MediaMark, in flow: Flow) {
        guard mark.kind == .audio, heard != nil else { return }
        var known = heard?[flow] ?? ([], now)
        // A gate that was closed meanwhile does not know what went through it before.
        if now.milliseconds(since: known.last) > Self.pauseMilliseconds { known.numbers = [] }
        let isNew = known.numbers.insert(mark.number).inserted
        heard?[flow] = (known.numbers, now)
        guard !isNew else { return }
        violate("sound \(mark.number) of \(flow.publisher) to \(flow.viewer) a second time")
    }

    private static let pauseMilliseconds: Int64 = 400

    private func violate(_ text: String) {
        violations.append("\(Double(now.nanoseconds) / 1e9) \(text)")
    }

    func flow(of mark: MediaMark, to client: SimulatedClient) -> Flow {
        Flow(publisher: Int(mark.publisher), viewer: client.index, kind: mark.kind)
    }

    /// Takes a datagram that has left a worker's socket.
    func leave(_ bytes: [UInt8], to path: Path, from worker: Int) {
        guard let client = clients[path] else { return }
        if case .rtp = Datagram(bytes.span) {
            let ssrc = bytes.span.u32(at: 8)
            let wire = Wire(path: path, ssrc: ssrc, sequence: bytes.span.u16(at: 2))
            if early.remove(wire) != nil { written(bytes, to: path, by: worker) }
            guard let mark = underWay.removeValue(forKey: wire) else {
                Issue.record("a packet left that nobody wrote")
                return
            }
            received += 1
            if mark.room != client.room { strays += 1 }
            let flow = flow(of: mark, to: client)
            flows[flow, default: Count()].left += 1
            if forbidden.contains(flow) {
                violate(
                    "\(flow.kind) of \(flow.publisher) to \(flow.viewer), who has no right to it"
                )
            }
            return
        }
        var answers = Batch(capacity: 16)
        let found = client.peer.receive(bytes.span, at: now, into: &answers)
        if case .rtcp(let length) = found { client.take(report: client.peer.clear(length: length)) }
        deliver(&answers, from: client)
    }
}
