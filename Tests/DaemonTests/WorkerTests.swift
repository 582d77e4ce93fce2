import CKernel
import ControlPlane
import Kernel
import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// A worker on its own thread, with a socket on a port that the kernel chooses.
struct WorkerTests {
    /// Waits for events until `body` returns `true`; gives up after ten seconds.
    static func events(of worker: Worker, until body: (WorkerEvent) -> Bool) throws {
        var poller = try Poller()
        try poller.add(worker.events.descriptor, for: .readable, token: 0)
        let start = Instant.monotonic()
        let end = start.advanced(milliseconds: 10_000)
        while poller.wait(until: end, at: .monotonic()) > 0 {
            for event in worker.events.drain().messages where body(event) { return }
        }
        Issue.record("the worker stayed silent")
    }

    static func withWorker(_ body: (Worker, UDPSocket) throws -> Void) throws {
        let socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { socket.close() }
        let setup = Worker.Setup(
            index: 0,
            sockets: [socket],
            limits: .default,
            identity: try DTLSIdentity(),
            engine: .libsrtp2,
            log: Log(level: .error, descriptor: kernel_open_null())
        )
        let worker = try Worker(setup)
        try body(worker, socket)
        worker.commands.close()
        var poller = try Poller()
        try poller.add(worker.events.descriptor, for: .readable, token: 0)
        var isClosed = false
        while !isClosed {
            let end = Instant.monotonic().advanced(milliseconds: 10_000)
            let count = poller.wait(until: end, at: .monotonic())
            try #require(count > 0, "the worker does not end")
            isClosed = worker.events.drain().closed
        }
    }

    @Test
    func `fences come back in order`() throws {
        try Self.withWorker { worker, _ in
            worker.commands.post([.fence(epoch: 1), .fence(epoch: 2)])
            worker.commands.post([.fence(epoch: 3)])
            var epochs: [UInt64] = []
            try Self.events(of: worker) { event in
                if case .fenced(let epoch, _, let packets) = event {
                    epochs.append(epoch)
                    #expect(packets == 0)
                }
                return epochs.count == 3
            }
            #expect(epochs == [1, 2, 3])
        }
    }

    @Test
    func `unrelated datagrams are counted`() throws {
        try Self.withWorker { worker, socket in
            let peer = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
            defer { peer.close() }
            var batch = Batch(capacity: 8)
            let path = Path(remote: socket.address, local: 0)
            for first in [0x05, 0x05, 0x05] as [UInt8] {
                batch.append(to: path) { output in
                    for _ in 0..<100 { output.append(first) }
                }
            }
            batch.append(to: path) { output in
                for _ in 0..<1_500 { output.append(0x80) }
            }
            var udpSender = UDPSender([peer])
            udpSender.send(&batch, from: LocalAddresses([peer]), at: .monotonic())
            // Commands and datagrams have separate queues: ask until all datagrams are counted.
            var token: UInt64 = 1
            var last = WorkerStatistics()
            worker.commands.post([.report(token: token)])
            try Self.events(of: worker) { event in
                guard case .statistics(token, let statistics) = event else { return false }
                last = statistics
                guard statistics.datagramsIn < 4 else { return true }
                token += 1
                worker.commands.post([.report(token: token)])
                return false
            }
            let drops = Dictionary(
                uniqueKeysWithValues: zip(DropReason.allCases, last.drops).filter { $1 > 0 }
            )
            #expect(drops == [.unknownProtocol: 3, .oversized: 1])
            #expect(last.bytesIn == 1_800)
            #expect(last.kernelDrops == 0)
            #expect((0...1).contains(last.load))
        }
    }
}
