import CKernel
import Synchronization

/// Messages from one thread to another, with a descriptor that is readable while some lie there.
///
/// The receiver looks in only when its poller says so: the packet path takes no lock. The queue
/// has no bound of its own: one side waits for fences of the other, and the number of commands
/// and events between two fences is bounded by what exists.
package final class Mailbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var closed = false
    }

    package let descriptor: Int32
    private let state = Locked(State())
    private let lookCount = Atomic<UInt64>(0)

    package init() throws(SystemError) {
        descriptor = try SystemError.check(kernel_eventfd_create(), "eventfd")
    }

    deinit { kernel_close(descriptor) }

    /// Adds messages in order; wakes the receiver where it has nothing to look at yet.
    package func post(_ messages: [Message]) {
        guard !messages.isEmpty else { return }
        let wasEmpty = state.withLock { state in
            defer { state.messages.append(contentsOf: messages) }
            return state.messages.isEmpty
        }
        if wasEmpty { _ = kernel_eventfd_signal(descriptor) }
    }

    /// How often the receiver has looked in, whether anything lay there or not.
    package var looks: UInt64 { lookCount.load(ordering: .relaxed) }

    /// Has the receiver look in, though nothing need be there.
    package func ring() { _ = kernel_eventfd_signal(descriptor) }

    /// Tells the receiver that nothing more will come.
    package func close() {
        state.withLock { $0.closed = true }
        _ = kernel_eventfd_signal(descriptor)
    }

    /// Everything that lies there, and whether the sender has closed it.
    package func drain() -> (messages: [Message], closed: Bool) {
        lookCount.add(1, ordering: .relaxed)
        // Before the look, so that a message that comes after it signals again.
        _ = kernel_eventfd_drain(descriptor)
        return state.withLock { state in
            var taken: [Message] = []
            swap(&taken, &state.messages)
            return (taken, state.closed)
        }
    }
}
