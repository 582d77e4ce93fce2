import CKernel
import Synchronization

/// Message queue from one thread to another, with a descriptor that is readable while it holds
/// messages.
///
/// The receiver reads it only when its poller reports it, so the packet path takes no lock. The
/// queue is unbounded, but each side waits for the other's fences, and the number of commands and
/// events between two fences is bounded by the existing objects.
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

    /// Appends messages in order; wakes the receiver if the queue was empty.
    package func post(_ messages: [Message]) {
        guard !messages.isEmpty else { return }
        let wasEmpty = state.withLock { state in
            defer { state.messages.append(contentsOf: messages) }
            return state.messages.isEmpty
        }
        if wasEmpty { _ = kernel_eventfd_signal(descriptor) }
    }

    /// Number of times that the receiver has drained the queue, empty or not.
    package var drainCount: UInt64 { lookCount.load(ordering: .relaxed) }

    /// Wakes the receiver so that it drains the queue, even if empty.
    package func ring() { _ = kernel_eventfd_signal(descriptor) }

    /// Marks the mailbox closed: no more messages will follow.
    package func close() {
        state.withLock { $0.closed = true }
        _ = kernel_eventfd_signal(descriptor)
    }

    /// Returns all queued messages, and whether the sender has closed the mailbox.
    package func drain() -> (messages: [Message], closed: Bool) {
        lookCount.add(1, ordering: .relaxed)
        // Reset the descriptor first, so that a message posted after the drain signals again.
        _ = kernel_eventfd_drain(descriptor)
        return state.withLock { state in
            var taken: [Message] = []
            swap(&taken, &state.messages)
            return (taken, state.closed)
        }
    }
}
