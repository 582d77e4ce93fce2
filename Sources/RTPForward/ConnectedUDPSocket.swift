import CKernel
import Glibc
import WorkerInterface

/// Connected UDP socket that closes itself.
///
/// If nothing listens at the peer, a later send reports it (ECONNREFUSED).
final class ConnectedUDPSocket {
    enum Outcome: Hashable {
        case sent
        /// An earlier datagram found no listener.
        case refused
        /// The system did not accept the datagram.
        case dropped
    }

    private let descriptor: Int32

    /// Returns `nil` if the socket cannot be connected, for example without a route.
    init?(to address: Address) {
        let descriptor = kernel_udp_connect(address.kernel, address.isIPv6)
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { kernel_close(descriptor) }

    /// Sends a datagram without blocking.
    func send(_ bytes: [UInt8]) -> Outcome {
        switch kernel_write(descriptor, bytes.span) {
        case 0...: .sent
        case Int64(-ECONNREFUSED): .refused
        default: .dropped
        }
    }

    /// Reads the next datagram from the peer, truncated to `buffer`.
    ///
    /// - Returns: its length; `nil` if none is waiting.
    func receive(into buffer: inout [UInt8]) -> Int? {
        var places = buffer.mutableSpan
        let count = Int(kernel_read(descriptor, &places))
        return count > 0 ? count : nil
    }
}
