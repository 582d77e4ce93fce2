import CKernel
import Kernel
import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

struct SocketCountersTests {
    @Test
    func `a full queue of the kernel is counted`() throws {
        let receiver = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        let sender = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer {
            receiver.close()
            sender.close()
        }
        _ = kernel_set_receive_buffer(receiver.descriptor, 4_096)
        var udpSender = UDPSender([sender])
        let path = Path(remote: receiver.address, local: 0)
        for _ in 0..<64 { Self.send(to: path, from: sender, through: &udpSender) }
        var counters = SocketCounters(sockets: 1)
        var inbox = Inbox()
        var sent = 64
        var received = 0
        var statistics = WorkerStatistics()
        let end = Instant.monotonic().advanced(milliseconds: 10_000)
        // The count is delivered with the next datagram that is queued, which on a busy machine
        // takes its time.
        while statistics.kernelDrops + UInt64(received) < sent, Instant.monotonic() < end {
            if inbox.receive(from: receiver) == nil {
                received += inbox.count
                counters.note(queueDrops: inbox.queueDrops, socket: 0)
                statistics = WorkerStatistics()
                counters.add(to: &statistics, udpSender, TCPConnections([]))
            } else {
                Self.send(to: path, from: sender, through: &udpSender)
                sent += 1
            }
        }
        #expect(received > 0 && statistics.kernelDrops > 0)
        #expect(statistics.kernelDrops == UInt64(sent - received))
    }

    private static func send(
        to path: Path,
        from socket: UDPSocket,
        through udpSender: inout UDPSender
    ) {
        var batch = Self.batch([1_000], to: path)
        udpSender.send(&batch, from: LocalAddresses([socket]), at: .monotonic())
    }

    private static func batch(_ lengths: [Int], to path: Path) -> Batch {
        var batch = Batch(capacity: lengths.count)
        for length in lengths {
            batch.append(to: path) { output in
                for _ in 0..<length { output.append(0) }
            }
        }
        return batch
    }
}
