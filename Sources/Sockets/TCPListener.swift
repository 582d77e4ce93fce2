import CKernel
import Glibc
package import Kernel
package import WorkerInterface

/// A socket that takes TCP connections.
///
/// It only names the descriptor, as `UDPSocket` does; who opened it closes it.
package struct TCPListener: Sendable {
    package let descriptor: Int32
    /// Where it is bound; the port is the one that the kernel chose where 0 was asked for.
    package let address: Address

    /// What `accept` comes back with.
    enum Arrival {
        case connection(descriptor: Int32, remote: Address)
        /// It went again before it could be taken.
        case gone
        /// Nobody waits.
        case nobody
        /// No descriptors are left for who waits.
        case noDescriptors
    }

    /// Listens on `address`; port 0 is one that the kernel chooses.
    package static func open(_ address: Address) throws(SystemError) -> TCPListener {
        let descriptor = try SystemError.check(
            kernel_tcp_listen(address.kernel, address.isIPv6, backlog),
            address.endpointText
        )
        var bound = kernel_address()
        let result = unsafe kernel_local_address(descriptor, &bound)
        _ = try SystemError.check(result, address.endpointText)
        return TCPListener(descriptor: descriptor, address: Address(bound))
    }

    package func close() { kernel_close(descriptor) }

    /// Takes one connection, if there is any.
    func accept() -> Arrival {
        var remote = kernel_address()
        let result = unsafe kernel_tcp_accept(
            descriptor,
            Self.unsentBytes,
            Self.timeoutMilliseconds,
            &remote
        )
        switch -result {
        case ...0: return .connection(descriptor: result, remote: Address(remote))
        case EAGAIN: return .nobody
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .noDescriptors
        default: return .gone
        }
    }

    /// Connections that wait in the kernel to be taken.
    private static let backlog: Int32 = 128
    /// The kernel calls a connection writable while less than half of this has not left.
    ///
    /// What waits must wait with us, where audio can overtake video and what is old is dropped.
    static let unsentBytes: Int32 = 4_096
    /// How long a peer may take nothing of what it is sent.
    private static let timeoutMilliseconds: Int32 = 30_000
}
