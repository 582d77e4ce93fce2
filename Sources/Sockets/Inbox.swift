import CKernel
package import WorkerInterface

/// Places for the datagrams of one receive call; the kernel fills them.
///
/// Safe: it owns the places, and what it lends out is bound to its own lifetime and is never
/// longer than what was received.
@safe
package struct Inbox: ~Copyable {
    /// Bytes of the largest datagram that is taken whole.
    package static let maximumLength = 2_048
    /// Datagrams of one receive call, at most.
    package let capacity: Int

    private let inbox: OpaquePointer
    private let datagrams: UnsafePointer<kernel_datagram>
    package private(set) var count = 0

    package init(capacity: Int = 64) {
        precondition(capacity > 0, "an inbox holds at least one datagram")
        self.capacity = capacity
        let made = unsafe kernel_inbox_create(Int32(capacity), Int32(Self.maximumLength))
        guard let made = unsafe made else { preconditionFailure("no memory for an inbox") }
        unsafe inbox = made
        unsafe datagrams = kernel_inbox_datagrams(made)
    }

    deinit { unsafe kernel_inbox_destroy(inbox) }

    /// Takes what has come, up to `capacity`; what lay there before is gone.
    ///
    /// Returns the errno where there is none: EAGAIN when all has been taken.
    package mutating func receive(from socket: UDPSocket) -> Int32? {
        let received = unsafe kernel_inbox_receive(inbox, socket.descriptor)
        count = Int(max(0, received))
        return received < 0 ? -received : nil
    }

    /// The datagram at `index`; empty where it was larger than `maximumLength`.
    package subscript(index: Int) -> Span<UInt8> {
        @_lifetime(borrow self)
        get {
            precondition(index < count)
            let datagram = unsafe datagrams[index]
            let length = unsafe datagram.truncated ? 0 : Int(datagram.length)
            let span = unsafe Span(_unsafeStart: datagram.bytes, count: length)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    package func isTruncated(_ index: Int) -> Bool {
        precondition(index < count)
        return unsafe datagrams[index].truncated
    }

    package func length(_ index: Int) -> Int {
        precondition(index < count)
        return unsafe Int(datagrams[index].length)
    }

    package func remote(_ index: Int) -> Address {
        precondition(index < count)
        return unsafe Address(datagrams[index].remote)
    }

    /// Which address of ours it came to, and by which interface.
    package func local(_ index: Int) -> (address: Address, interface: UInt32) {
        precondition(index < count)
        return unsafe (Address(datagrams[index].local), datagrams[index].interface)
    }

    /// When it came to the machine, by the wall clock: Unix time in nanoseconds, 0 without a stamp.
    package func arrival(_ index: Int) -> Int64 {
        precondition(index < count)
        return unsafe datagrams[index].arrival
    }

    /// Datagrams that the socket's queue had dropped when the last of these came, modulo 2^32.
    package var queueDrops: UInt32? {
        guard count > 0, unsafe datagrams[count - 1].has_queue_drops else { return nil }
        return unsafe datagrams[count - 1].queue_drops
    }
}
