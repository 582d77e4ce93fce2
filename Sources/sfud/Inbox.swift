import CKernel
import SFU

/// Places for the datagrams of one receive call; the kernel fills them.
///
/// Safe: it owns the places, and what it lends out is bound to its own lifetime and is never
/// longer than what was received.
@safe
struct Inbox: ~Copyable {
    /// Bytes of the largest datagram that is taken whole.
    static let maximumLength = 2_048
    static let capacity = 64

    private let inbox: OpaquePointer
    private let datagrams: UnsafePointer<kernel_datagram>
    private(set) var count = 0

    init() {
        let made = unsafe kernel_inbox_create(Int32(Self.capacity), Int32(Self.maximumLength))
        guard let made = unsafe made else { preconditionFailure("no memory for an inbox") }
        unsafe inbox = made
        unsafe datagrams = kernel_inbox_datagrams(made)
    }

    deinit { unsafe kernel_inbox_destroy(inbox) }

    /// Takes what has come, up to `capacity`; what lay there before is gone.
    ///
    /// Returns the errno where there is none: EAGAIN when all has been taken.
    mutating func receive(from socket: UDPSocket) -> Int32? {
        let received = unsafe kernel_inbox_receive(inbox, socket.descriptor)
        count = Int(max(0, received))
        return received < 0 ? -received : nil
    }

    /// The datagram at `index`; empty where it was larger than `maximumLength`.
    subscript(index: Int) -> Span<UInt8> {
        @_lifetime(borrow self)
        get {
            precondition(index < count)
            let datagram = unsafe datagrams[index]
            let length = unsafe datagram.truncated ? 0 : Int(datagram.length)
            let span = unsafe Span(_unsafeStart: datagram.bytes, count: length)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    func isTruncated(_ index: Int) -> Bool {
        precondition(index < count)
        return unsafe datagrams[index].truncated
    }

    func length(_ index: Int) -> Int {
        precondition(index < count)
        return unsafe Int(datagrams[index].length)
    }

    func remote(_ index: Int) -> Address {
        precondition(index < count)
        return unsafe Address(datagrams[index].remote)
    }

    /// Which address of ours it came to, and by which interface.
    func local(_ index: Int) -> (address: Address, interface: UInt32) {
        precondition(index < count)
        return unsafe (Address(datagrams[index].local), datagrams[index].interface)
    }

    /// Datagrams that the socket's queue had dropped when the last of these came, modulo 2^32.
    var queueDrops: UInt32? {
        guard count > 0, unsafe datagrams[count - 1].has_queue_drops else { return nil }
        return unsafe datagrams[count - 1].queue_drops
    }
}
