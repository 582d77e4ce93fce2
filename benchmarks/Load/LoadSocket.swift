import CKernel
import SFU

/// Why the load cannot run: the system refused something.
struct SystemFailure: Error, CustomStringConvertible {
    var description: String

    init(_ what: String, _ number: Int32) { description = "\(what): errno \(number)" }
}

/// A UDP socket of one peer's own, on loopback; UDP_GRO stays off, as it is for real receivers.
///
/// It only names the descriptor: the loop that opened it closes it.
struct LoadSocket: Sendable {
    let descriptor: Int32

    /// What a viewer's share of a keyframe burst needs, and the loop's own pauses, in bytes.
    private static let buffer: Int32 = 4 << 20

    static func open() throws(SystemFailure) -> Self {
        let loopback = Address(ipv4: 0x7f00_0001, port: 0)
        let descriptor = kernel_udp_open(
            kernel_address(high: loopback.high, low: loopback.low, port: 0),
            false
        )
        guard descriptor >= 0 else { throw SystemFailure("no UDP socket", -descriptor) }
        _ = kernel_set_receive_buffer(descriptor, buffer)
        _ = kernel_set_send_buffer(descriptor, buffer)
        return Self(descriptor: descriptor)
    }

    /// Sends a batch, one datagram a call, and empties it; returns how many were refused.
    func send(_ batch: inout Batch) -> Int {
        var refused = 0
        for index in 0..<batch.count {
            let remote = batch.path(at: index).remote
            // The datagram is valid during the call, which does not keep it.
            let result = unsafe batch[index].withUnsafeBufferPointer { bytes in
                var run = unsafe kernel_run()
                unsafe run.remote = kernel_address(
                    high: remote.high,
                    low: remote.low,
                    port: remote.port
                )
                unsafe run.first = bytes.baseAddress
                unsafe run.count = 1
                unsafe run.length = UInt32(bytes.count)
                unsafe run.last_length = UInt32(bytes.count)
                return unsafe kernel_send_run(descriptor, false, &run)
            }
            if result < 0 { refused += 1 }
        }
        batch.removeAll()
        return refused
    }
}

/// Places for the datagrams of one receive call; the kernel fills them.
///
/// Safe: it owns the places, and what it lends out is bound to its own lifetime and is never
/// longer than what was received.
@safe
struct LoadInbox: ~Copyable {
    static let capacity = 64
    private static let maximumLength = 2_048

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

    /// Takes what has come, up to `capacity`; returns whether there may be more.
    mutating func receive(from socket: LoadSocket) -> Bool {
        count = Int(max(0, unsafe kernel_inbox_receive(inbox, socket.descriptor)))
        return count == Self.capacity
    }

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

    /// Datagrams that the socket's queue had dropped when the last of these came.
    var queueDrops: UInt32 {
        guard count > 0, unsafe datagrams[count - 1].has_queue_drops else { return 0 }
        return unsafe datagrams[count - 1].queue_drops
    }
}
