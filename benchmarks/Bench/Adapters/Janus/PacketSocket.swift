import Glibc

/// A connected Unix-domain socket that preserves message boundaries (`SOCK_SEQPACKET`, unix(7)).
///
/// It is safe: buffers are passed with their lengths, and no pointer outlives its call.
@safe
final class PacketSocket: Sendable {
    /// Longest message that is received, in bytes; above the kernel's default limit.
    private static let maximumLength = 1 << 18

    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { _ = Glibc.close(descriptor) }

    /// Connects to the socket at `path`; returns `nil` if nobody listens or the path is too long.
    static func connect(to path: String) -> PacketSocket? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return nil }
        let made = PacketSocket(descriptor: descriptor)
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, length)
            }
        }
        return status == 0 ? made : nil
    }

    /// Sends one message and returns whether it succeeded; blocks while the peer does not read.
    func send(_ message: [UInt8]) -> Bool {
        var count: Int
        repeat {
            count = unsafe message.withUnsafeBytes { bytes in
                unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
        } while count < 0 && errno == EINTR
        return count == message.count
    }

    /// Returns the next message, blocking until there is one; `nil` at the end.
    func receive() -> [UInt8]? {
        let message = unsafe [UInt8](unsafeUninitializedCapacity: Self.maximumLength) {
            buffer,
            filled in
            var count: Int
            repeat {
                count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
            } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        return message.isEmpty ? nil : message
    }

    /// Shuts down both directions; a blocked `receive` returns.
    func shutdown() { _ = Glibc.shutdown(descriptor, Int32(SHUT_RDWR)) }
}
