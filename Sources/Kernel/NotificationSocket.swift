internal import CKernel

/// Datagram socket on which a service manager is notified (sd_notify(3)).
package struct NotificationSocket {
    package let descriptor: Int32
    /// Value of `NOTIFY_SOCKET`.
    package let address: String

    /// A datagram with its sender; the receiver closes or keeps the descriptors.
    package struct Datagram {
        package var sender: Int32
        package var text: [UInt8]
        package var descriptors: [Int32]
        /// Whether text or descriptors are missing.
        package var isTruncated: Bool
    }

    package init() throws(SystemError) {
        var name = [CChar](repeating: 0, count: Int(KERNEL_NOTIFY_NAME))
        descriptor = try SystemError.check(
            unsafe kernel_notify_listen(&name),
            "socket for notifications"
        )
        address = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }

    /// Returns the next datagram, or `nil` if none is waiting.
    package func receive() -> Datagram? {
        var text = [UInt8](repeating: 0, count: Self.textLimit)
        var received = [Int32](repeating: -1, count: Int(KERNEL_NOTIFY_DESCRIPTORS))
        var places = text.mutableSpan
        var numbers = received.mutableSpan
        let found = kernel_notify_receive(descriptor, &places, &numbers)
        guard found.length >= 0 else { return nil }
        return Datagram(
            sender: found.pid,
            text: Array(text.prefix(Int(found.length))),
            descriptors: Array(received.prefix(Int(found.descriptors))),
            isTruncated: found.truncated
        )
    }

    /// Longest text; systemd has the same limit.
    private static let textLimit = 4_096
}
