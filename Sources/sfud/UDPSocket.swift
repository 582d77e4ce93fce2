import CKernel
import SFU

/// A bound, non-blocking UDP socket.
///
/// It only names the descriptor, so that a worker's thread can be handed it; who opened it
/// closes it.
struct UDPSocket: Sendable {
    let descriptor: Int32
    /// Where it is bound; the port is the one that the kernel chose where 0 was asked for.
    let address: Address

    /// Sizes of a socket's kernel buffers, in bytes.
    struct Buffers: Hashable, Sendable {
        var receive = 4 << 20
        var send = 4 << 20
    }

    static func open(_ address: Address) throws(SystemError) -> UDPSocket {
        let descriptor = try SystemError.check(
            kernel_udp_open(address.kernel, address.isIPv6),
            address.endpointText
        )
        var bound = kernel_address()
        let result = unsafe kernel_local_address(descriptor, &bound)
        _ = try SystemError.check(result, address.endpointText)
        return UDPSocket(descriptor: descriptor, address: Address(bound))
    }

    func close() { kernel_close(descriptor) }

    /// Asks for `wanted` and returns what to tell the operator where the kernel gave less.
    ///
    /// With the usual 208 KiB a burst of a few hundred packets is lost in the kernel, so this
    /// is worth a warning that names the cure.
    func setBuffers(_ wanted: Buffers) -> [BufferShortage] {
        let received = Int(kernel_set_receive_buffer(descriptor, Int32(clamping: wanted.receive)))
        let sent = Int(kernel_set_send_buffer(descriptor, Int32(clamping: wanted.send)))
        return [
            BufferShortage(sysctl: "net.core.rmem_max", wanted: wanted.receive, got: received),
            BufferShortage(sysctl: "net.core.wmem_max", wanted: wanted.send, got: sent),
        ].filter { $0.got < $0.wanted }
    }
}

/// A kernel buffer that came out smaller than it was asked for.
struct BufferShortage: Equatable {
    /// The setting that bounds it.
    var sysctl: String
    var wanted: Int
    var got: Int
}
