import CKernel
import Glibc
package import Kernel
package import WorkerInterface

/// Listening TCP socket.
///
/// It only names the descriptor, like `UDPSocket`; the code that opened it closes it.
package struct TCPListener: Sendable {
    package let descriptor: Int32
    /// Bound address; its port is the kernel's choice if 0 was asked for.
    package let address: Address

    /// Result of `accept`.
    package enum Arrival {
        case connection(descriptor: Int32, remote: Address)
        /// The connection was closed before it was accepted.
        case gone
        /// No connection is waiting.
        case nobody
        /// No descriptor is left for a waiting connection.
        case noDescriptors
    }

    /// Listens on `address`; with port 0 the kernel chooses.
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

    /// Makes a listener of an open descriptor if it listens on `wanted`; with port 0 any port does.
    package static func adopt(_ descriptor: Int32, at wanted: Address) -> TCPListener? {
        let family = wanted.isIPv6 ? KERNEL_SOCKET_IPV6 : 0
        var bound = kernel_address()
        guard kernel_socket_kind(descriptor) == Int32(KERNEL_SOCKET_TCP_LISTENER | family),
            unsafe kernel_local_address(descriptor, &bound) == 0,
            wanted.isSatisfied(by: Address(bound)),
            kernel_listen_again(descriptor, backlog) == 0
        else { return nil }
        return TCPListener(descriptor: descriptor, address: Address(bound))
    }

    package func close() { kernel_close(descriptor) }

    /// Accepts one connection, if any is waiting.
    package func accept() -> Arrival {
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

    /// Starts a connection to an address, without waiting for it.
    package static func connect(to remote: Address) throws(SystemError) -> Int32 {
        try SystemError.check(
            kernel_tcp_connect(remote.kernel, remote.isIPv6, timeoutMilliseconds),
            remote.endpointText
        )
    }

    /// Maximum number of connections that wait in the kernel to be accepted.
    private static let backlog: Int32 = 128
    /// Unsent bytes in the kernel (TCP_NOTSENT_LOWAT); below half of this it reports writability.
    ///
    /// Data must wait in our queue, where audio can overtake video and stale data is dropped.
    static let unsentBytes: Int32 = 4_096
    /// Longest time that a peer may acknowledge nothing (TCP_USER_TIMEOUT).
    private static let timeoutMilliseconds: Int32 = 30_000
}
