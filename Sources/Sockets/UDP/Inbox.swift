import CKernel
package import WorkerInterface

/// Buffers for the datagrams of one receive call, filled by the kernel.
///
/// Safe: it owns the buffers, and the views that it lends are bound to its lifetime and never
/// longer than the datagrams received.
@safe
package struct Inbox: ~Copyable {
    /// Length of the largest datagram that is received whole, in bytes.
    package static let maximumLength = 2_048
    /// Maximum number of datagrams of one receive call.
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

    /// Receives up to `capacity` waiting datagrams in place of the previous ones.
    ///
    /// Returns the errno if there are none: EAGAIN when all have been received.
    package mutating func receive(from socket: UDPSocket) -> Int32? {
        let received = unsafe kernel_inbox_receive(inbox, socket.descriptor)
        count = Int(max(0, received))
        return received < 0 ? -received : nil
    }

    /// Datagram at `index`; empty if it was longer than `maximumLength`.
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

    /// Returns a copy of the datagram at `index`; empty if it was longer than `maximumLength`.
    package func copy(_ index: Int) -> [UInt8] {
        unsafe self[index].withUnsafeBufferPointer { unsafe Array($0) }
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

    /// Returns the local address that the datagram came to, and the interface.
    package func local(_ index: Int) -> (address: Address, interface: UInt32) {
        precondition(index < count)
        return unsafe (Address(datagrams[index].local), datagrams[index].interface)
    }

    /// Returns the kernel's arrival time as Unix time in nanoseconds, 0 without a stamp.
    package func arrival(_ index: Int) -> Int64 {
        precondition(index < count)
        return unsafe datagrams[index].arrival
    }

    /// Datagrams dropped by the socket's queue up to the last datagram received, modulo 2^32.
    package var queueDrops: UInt32? {
        guard count > 0, unsafe datagrams[count - 1].has_queue_drops else { return nil }
        return unsafe datagrams[count - 1].queue_drops
    }
}
