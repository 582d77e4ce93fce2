import CKernel
import Glibc
import WorkerInterface

/// A UDP socket with one peer, that closes itself.
///
/// A peer that does not listen is told of with what is sent next (ECONNREFUSED).
final class OutputSocket {
    enum Outcome: Hashable {
        case sent
        /// Nobody listens there.
        case refused
        /// The system does not take it.
        case dropped
    }

    private let descriptor: Int32

    /// Returns `nil` where there is no way there.
    init?(to address: Address) {
        descriptor = kernel_udp_connect(address.kernel, address.isIPv6)
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { kernel_close(descriptor) } }

    /// Sends a datagram, and never waits.
    func send(_ bytes: [UInt8]) -> Outcome {
        switch kernel_write(descriptor, bytes.span) {
        case 0...: .sent
        case Int64(-ECONNREFUSED): .refused
        default: .dropped
        }
    }

    /// The next datagram that the peer has sent, as far as `buffer` holds it.
    ///
    /// - Returns: its length; `nil`: there is none.
    func receive(into buffer: inout [UInt8]) -> Int? {
        var places = buffer.mutableSpan
        let count = Int(kernel_read(descriptor, &places))
        return count > 0 ? count : nil
    }
}
