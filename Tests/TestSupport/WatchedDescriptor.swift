import Glibc

/// Descriptor of which a test can tell whether it is open anywhere.
///
/// Its number alone says nothing: other tests that run at the same time open files too.
package struct WatchedDescriptor: Sendable {
    /// Descriptor to give away.
    package let descriptor: Int32
    private let peer: Int32

    package init() {
        var ends: [Int32] = [-1, -1]
        let status = unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        precondition(status == 0, "a test has descriptors to spare")
        (descriptor, peer) = (ends[0], ends[1])
    }

    /// Whether the descriptor or a copy of it is open.
    package var isOpen: Bool {
        var byte: UInt8 = 0
        return unsafe recv(peer, &byte, 1, Int32(MSG_DONTWAIT)) < 0
    }

    /// Closes the watching end.
    package func finish() { close(peer) }
}
