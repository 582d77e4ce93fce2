import CKernel
package import Kernel
package import SFU
package import WorkerInterface

/// A bound, non-blocking UDP socket.
///
/// It only names the descriptor, so that a worker's thread can be handed it; who opened it
/// closes it. It tells by which address of ours each datagram came, and of the drops of its queue.
package struct UDPSocket: Sendable {
    package let descriptor: Int32
    /// Where it is bound; the port is the one that the kernel chose where 0 was asked for.
    package let address: Address

    /// Sizes of a socket's kernel buffers, in bytes.
    package struct Buffers: Hashable, Sendable {
        package var receive: Int
        package var send: Int

        package init(receive: Int = 4 << 20, send: Int = 4 << 20) {
            self.receive = receive
            self.send = send
        }
    }

    package init(descriptor: Int32, address: Address) {
        self.descriptor = descriptor
        self.address = address
    }

    /// Opens a socket bound to `address`; port 0 is one that the kernel chooses.
    package static func open(_ address: Address) throws(SystemError) -> UDPSocket {
        let descriptor = try SystemError.check(
            kernel_udp_open(address.kernel, address.isIPv6),
            address.endpointText
        )
        var bound = kernel_address()
        let result = unsafe kernel_local_address(descriptor, &bound)
        _ = try SystemError.check(result, address.endpointText)
        return UDPSocket(descriptor: descriptor, address: Address(bound))
    }

    package func close() { kernel_close(descriptor) }

    /// Asks for `wanted` and returns what to tell the operator where the kernel gave less.
    ///
    /// With the usual 208 KiB a burst of a few hundred packets is lost in the kernel, so this
    /// is worth a warning that names the cure.
    package func setBuffers(_ wanted: Buffers) -> [BufferShortage] {
        let received = Int(kernel_set_receive_buffer(descriptor, Int32(clamping: wanted.receive)))
        let sent = Int(kernel_set_send_buffer(descriptor, Int32(clamping: wanted.send)))
        return [
            BufferShortage(sysctl: "net.core.rmem_max", wanted: wanted.receive, got: received),
            BufferShortage(sysctl: "net.core.wmem_max", wanted: wanted.send, got: sent),
        ].filter { $0.got < $0.wanted }
    }

    /// Has the kernel stamp what comes; returns whether it does so.
    package func stampArrivals() -> Bool { kernel_stamp_arrivals(descriptor) == 0 }

    /// Sends `run` of `batch` to where its path says, in one call, which never blocks.
    ///
    /// Returns an errno, or 0. A `source` other than the kernel's choice is one of this machine's
    /// addresses of the socket's family; `interface` is what it means something on, else 0.
    package func send(
        _ run: SendRun,
        of batch: borrowing Batch,
        source: Address? = nil,
        interface: UInt32 = 0
    ) -> Int32 {
        let source = source ?? Address(high: 0, low: 0, port: 0)
        precondition(run.count > 0 && run.end <= batch.count, "the run lies in the batch")
        // The places of a batch lie `stride` apart, and the run ends inside it.
        return unsafe batch[run.start].withUnsafeBufferPointer { first in
            var request = unsafe kernel_run(
                remote: batch.path(at: run.start).remote.kernel,
                local: source.kernel,
                interface: interface,
                first: first.baseAddress,
                stride: UInt32(Batch.stride),
                count: UInt32(run.count),
                length: UInt32(run.length),
                last_length: UInt32(run.lastLength)
            )
            return unsafe -kernel_send_run(descriptor, address.isIPv6, &request)
        }
    }

    /// Sends all of `batch` and empties it, runs of at most `segments` datagrams a call; returns
    /// how many the kernel refused.
    ///
    /// For who has one peer a socket and leaves loss to the network, like a load client.
    package func send(_ batch: inout Batch, segments: Int = 1) -> Int {
        precondition((1...64).contains(segments), "the kernel takes 64 segments a call")
        var refused = 0
        var index = 0
        while index < batch.count {
            let run = batch.run(from: index, limit: segments)
            if send(run, of: batch) != 0 { refused += run.count }
            index = run.end
        }
        batch.removeAll()
        return refused
    }
}

/// A kernel buffer that came out smaller than it was asked for.
package struct BufferShortage: Equatable {
    /// The setting that bounds it.
    package var sysctl: String
    package var wanted: Int
    package var got: Int
}
