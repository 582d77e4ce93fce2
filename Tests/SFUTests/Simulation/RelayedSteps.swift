import LoadPeer
import RTP

@testable import SFU
@testable import WorkerInterface

/// Common steps of tests of rooms that span workers.
extension RelayedCall {
    /// Aligns the clocks: workers connect their peers one after the other, then share one time.
    func alignClocks() {
        let latest = workers.map { $0.call.now }.max() ?? Instant(nanoseconds: 0)
        for worker in workers {
            worker.call.run(milliseconds: latest.milliseconds(since: worker.call.now))
        }
    }

    /// Subscribes the viewer of a worker to the publisher's video and audio.
    func watch(_ worker: Int, open: Bool = true) {
        for (slot, publication) in [(0, 1), (1, 0)] as [(UInt32, UInt32)] {
            let home = PublicationID(index: publication, generation: 1)
            let binding = Binding(
                publication: worker == 0 ? home : Self.mirrorID(publication),
                subscription: 7,
                open: open
            )
            workers[worker].call.apply(.bind(SlotID(index: slot, generation: 1), binding))
        }
    }

    func sendVideo(_ step: UInt16, isKeyframe: Bool) {
        workers[0].call.sendVideo(sequence: step, pictureID: step, isKeyframe: isKeyframe)
    }

    func sendAudio(_ step: UInt16) {
        let packet = Media.packet(
            payloadType: 111,
            sequence: step,
            timestamp: UInt32(step) * 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: Array(repeating: UInt8(truncatingIfNeeded: step), count: 80)
        )
        workers[0].call.send(packet, from: 0)
    }

    /// Returns the viewer on a worker; the publisher is worker 0's first peer.
    func viewer(_ worker: Int) -> Call.Peer { workers[worker].call.peers[worker == 0 ? 1 : 0] }

    func loseTheirPicture(_ worker: Int) {
        workers[worker].call.sendRTCP(from: worker == 0 ? 1 : 0) { output in
            let media = SSRC(rawValue: 0xaaaa)
            PictureLossIndication(sender: SSRC(rawValue: 1), media: media).encode(into: &output)
        }
    }

    /// Attaches a ledger of packet indexes to each worker.
    func keepLedgers() -> [IndexLedger] {
        workers.map { worker in
            let ledger = IndexLedger()
            worker.call.loses = { toCore, datagram in
                if !toCore { ledger.note(datagram) }
                return false
            }
            return ledger
        }
    }
}

extension Call.Peer {
    func numbers(of ssrc: UInt32) -> [UInt16] {
        received.filter { $0.ssrc == ssrc }.map { $0.u16(2) }
    }

    func payloads(of ssrc: UInt32) -> [[UInt8]] {
        received.filter { $0.ssrc == ssrc }.map { bytes in
            guard let packet = try? Packet(bytes.span) else { return [] }
            return Array(bytes[packet.headerLength...])
        }
    }

    func senderReports(of ssrc: UInt32) -> [SenderReport] {
        var found: [SenderReport] = []
        for bytes in reports {
            var blocks = RTCPBlocks(bytes.span)
            while let block = blocks.next() {
                guard block.type == RTCPType.senderReport,
                    let report = try? SenderReport(block), report.sender.rawValue == ssrc
                else { continue }
                found.append(report)
            }
        }
        return found
    }
}

extension WorkerStatistics {
    /// Whether every packet that another worker relayed is accounted for.
    var relaysAreBalanced: Bool { relayedIn == relayedForwarded + relayDrops.reduce(0, +) }
}
