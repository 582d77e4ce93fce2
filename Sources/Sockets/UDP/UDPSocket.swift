import CKernel
package import Kernel
package import SFU
package import WorkerInterface

/// Bound, non-blocking UDP socket.
///
/// It only names the descriptor, so that it can be passed to a worker's thread; the code that
/// opened it closes it. It reports the local address of each datagram, and the drops of its queue.
package struct UDPSocket: Sendable {
    package let descriptor: Int32
    /// Bound address; its port is the kernel's choice if 0 was asked for.
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

    /// Opens a socket bound to `address`; with port 0 the kernel chooses.
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

    /// Makes a socket of an open descriptor if it is a UDP socket bound to `wanted`; with port 0
    /// any port does.
    package static func adopt(_ descriptor: Int32, at wanted: Address) -> UDPSocket? {
        let family = wanted.isIPv6 ? KERNEL_SOCKET_IPV6 : 0
        var bound = kernel_address()
        guard kernel_socket_kind(descriptor) == Int32(KERNEL_SOCKET_UDP | family),
            unsafe kernel_local_address(descriptor, &bound) == 0,
            wanted.isSatisfied(by: Address(bound)),
            kernel_udp_prepare(descriptor, wanted.isIPv6) == 0
        else { return nil }
        return UDPSocket(descriptor: descriptor, address: Address(bound))
    }

    package func close() { kernel_close(descriptor) }

    /// Sets the kernel buffers; returns those that came out smaller than `wanted`.
    ///
    /// With the usual 208 KiB a burst of a few hundred packets is lost in the kernel, so a shortage
    /// is worth a warning that names the remedy.
    package func setBuffers(_ wanted: Buffers) -> [BufferShortage] {
        let received = Int(kernel_set_receive_buffer(descriptor, Int32(clamping: wanted.receive)))
        let sent = Int(kernel_set_send_buffer(descriptor, Int32(clamping: wanted.send)))
        return [
            BufferShortage(sysctl: "net.core.rmem_max", wanted: wanted.receive, got: received),
            BufferShortage(sysctl: "net.core.wmem_max", wanted: wanted.send, got: sent),
        ].filter { $0.got < $0.wanted }
    }

    /// Enables kernel timestamps for received datagrams; returns whether that worked.
    package func stampArrivals() -> Bool { kernel_timestamp_arrivals(descriptor) == 0 }

    /// Sends `run` of `batch` to its path in one call, which never blocks.
    ///
    /// Returns an errno, or 0. `source` is one of this machine's addresses of the socket's family,
    /// or `nil` for the kernel's choice. `interface` is given if the source is ambiguous without,
    /// else 0.
    package func send(
        _ run: SendRun,
        of batch: borrowing Batch,
        source: Address? = nil,
        interface: UInt32 = 0
    ) -> Int32 {
        var request = unsafe segments(of: run, of: batch, source: source, interface: interface)
        return unsafe -kernel_send_segments(descriptor, address.isIPv6, &request)
    }

    /// Most runs of one `send`.
    package static let runsAtOnce = Int(KERNEL_RUNS)

    /// Sends runs of `batch` to their paths in as few calls as possible, which never block.
    ///
    /// Returns the number of those sent, and the errno of the next one if that is not all of them.
    /// At most `runsAtOnce` runs of `SendRun.maximumCount` datagrams are sent; all paths lead out
    /// by this socket.
    func send(
        _ runs: [SendRun],
        of batch: borrowing Batch,
        from locals: borrowing LocalAddresses
    ) -> (sent: Int, error: Int32) {
        let count = min(runs.count, Self.runsAtOnce)
        return unsafe withUnsafeTemporaryAllocation(
            of: kernel_segments.self,
            capacity: count
        ) { requests in
            for index in 0..<count {
                let run = runs[index]
                let local = locals[batch.path(at: run.start).local]
                unsafe requests.initializeElement(
                    at: index,
                    to: segments(
                        of: run,
                        of: batch,
                        source: local.source,
                        interface: local.interface
                    )
                )
            }
            var error: Int32 = 0
            let sent = unsafe kernel_send_runs(
                descriptor,
                address.isIPv6,
                requests.baseAddress,
                UInt32(count),
                &error
            )
            return (Int(sent), error)
        }
    }

    /// Describes a run to the kernel; valid as long as `batch` stays as it is.
    @unsafe
    private func segments(
        of run: SendRun,
        of batch: borrowing Batch,
        source: Address?,
        interface: UInt32
    ) -> kernel_segments {
        let source = source ?? Address(high: 0, low: 0, port: 0)
        precondition(run.count > 0 && run.end <= batch.count, "the run lies in the batch")
        // The places of a batch lie `stride` apart, and the run ends inside the batch.
        return unsafe batch[run.start].withUnsafeBufferPointer { first in
            unsafe kernel_segments(
                remote: batch.path(at: run.start).remote.kernel,
                local: source.kernel,
                interface: interface,
                first: first.baseAddress,
                stride: UInt32(Batch.stride),
                count: UInt32(run.count),
                length: UInt32(run.length),
                last_length: UInt32(run.lastLength)
            )
        }
    }

    /// Sends all of `batch` in runs of at most `segments` datagrams, and empties it.
    ///
    /// Returns the number of datagrams that the kernel refused. It is for callers with one peer a
    /// socket that leave loss to the network, such as a load client.
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

/// Kernel buffer smaller than requested.
package struct BufferShortage: Equatable {
    /// Kernel setting that limits it.
    package var sysctl: String
    package var wanted: Int
    package var got: Int
}

extension Address {
    /// Whether a socket that was to be bound to this address may be bound to `bound`.
    func isSatisfied(by bound: Address) -> Bool {
        bound.port != 0 && with(port: 0) == bound.with(port: 0) && [0, bound.port].contains(port)
    }
}
