import CKernel
package import Kernel
package import RTP

/// Epoll instance that waits for many descriptors at once.
package struct Poller: ~Copyable {
    package struct Interest: OptionSet {
        package let rawValue: UInt32

        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let readable = Self(rawValue: UInt32(KERNEL_READABLE))
        package static let writable = Self(rawValue: UInt32(KERNEL_WRITABLE))
    }

    package struct Readiness {
        package var token: UInt64
        package var readable: Bool
        package var writable: Bool
        /// Whether the peer closed the connection, wholly or for writing, or the descriptor has an
        /// error.
        package var hungUp: Bool
    }

    private let descriptor: Int32
    private var ready = [kernel_readiness](
        repeating: kernel_readiness(token: 0, events: 0),
        count: Self.capacity
    )

    package init() throws(SystemError) {
        descriptor = try SystemError.check(kernel_epoll_create(), "epoll")
    }

    deinit { kernel_close(descriptor) }

    package func add(
        _ watched: Int32,
        for interest: Interest,
        token: UInt64
    ) throws(SystemError) {
        let result = kernel_epoll_add(descriptor, watched, interest.rawValue, token)
        _ = try SystemError.check(result, "watching a descriptor")
    }

    package func change(_ watched: Int32, to interest: Interest, token: UInt64) {
        let result = kernel_epoll_change(descriptor, watched, interest.rawValue, token)
        precondition(result == 0, "only a watched descriptor is changed")
    }

    package func remove(_ watched: Int32) {
        _ = kernel_epoll_remove(descriptor, watched)
    }

    /// Waits until a descriptor is ready or `deadline` is reached; returns the number of ready
    /// ones.
    ///
    /// With a deadline in the past it does not wait; `nil` means no deadline.
    package mutating func wait(until deadline: Instant?, at now: Instant) -> Int {
        let left = deadline.map { max(0, $0.nanoseconds(since: now)) } ?? -1
        let epoll = descriptor
        var places = ready.mutableSpan
        let count = kernel_epoll_wait(epoll, &places, left)
        precondition(count >= 0, "epoll refused its own descriptor")
        return Int(count)
    }

    /// Readiness found by the last wait at `index`.
    package subscript(index: Int) -> Readiness {
        let found = ready[index]
        return Readiness(
            token: found.token,
            readable: found.events & UInt32(KERNEL_READABLE) != 0,
            writable: found.events & UInt32(KERNEL_WRITABLE) != 0,
            hungUp: found.events & UInt32(KERNEL_HUNG_UP) != 0
        )
    }

    private static let capacity = 64
}
