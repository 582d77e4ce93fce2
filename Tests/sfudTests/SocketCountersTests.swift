import CKernel
import SFU
import Sockets
import Testing

@testable import sfud

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
        var outbox = Outbox([sender])
        let path = Path(remote: receiver.address, local: 0)
        for _ in 0..<64 {
            var batch = Self.batch([1_000], to: path)
            outbox.send(&batch, from: LocalAddresses([sender]), at: .monotonic())
        }
        var counters = SocketCounters(sockets: 1)
        var inbox = Inbox()
        var received = 0
        // The count travels with the next datagram that is taken into the queue.
        for _ in 0..<2 {
            #expect(inbox.receive(from: receiver) == nil)
            received += inbox.count
            counters.note(queueDrops: inbox.queueDrops, socket: 0)
            var batch = Self.batch([1_000], to: path)
            outbox.send(&batch, from: LocalAddresses([sender]), at: .monotonic())
        }
        var statistics = WorkerStatistics()
        counters.add(to: &statistics, outbox, Streams([]))
        #expect(received > 0)
        #expect(statistics.kernelDrops == UInt64(65 - received))
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
