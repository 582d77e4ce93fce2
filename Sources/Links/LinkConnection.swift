import CKernel
import Glibc
import Nodes
import RTP
import Sockets

/// A TCP connection to another node, or from one.
struct LinkConnection {
    /// Descriptor of the socket; its owner closes it.
    let descriptor: Int32
    let session: LinkSession
    /// Node that this one connects to; unknown of a peer that connects here until the handshake.
    var node: NodeName?
    /// Fingerprint of the peer, or the expected one.
    var fingerprint: String?
    /// Whether this node began the connection.
    let isOutgoing: Bool
    let begun: Instant
    var isUp = false
    var heard: Instant
    var nextPing: Instant
    var interest = Poller.Interest.readable
    private var deframer = LinkDeframer()
    private var queue: [UInt8] = []
    private var head = 0

    init(
        _ descriptor: Int32,
        _ session: LinkSession,
        to node: NodeName?,
        fingerprint: String?,
        at now: Instant
    ) {
        self.descriptor = descriptor
        self.session = session
        self.node = node
        self.fingerprint = fingerprint
        isOutgoing = node != nil
        begun = now
        heard = now
        nextPing = now
    }

    /// Bytes that the kernel has not taken yet.
    var waiting: Int { queue.count - head }

    /// Reads once; returns the messages that are complete.
    ///
    /// - Throws: if the connection must end.
    mutating func read(
        _ buffer: inout [UInt8],
        at now: Instant
    ) throws(LinkError) -> [LinkMessage] {
        var places = buffer.mutableSpan
        let count = kernel_read(descriptor, &places)
        guard count > 0 else {
            guard count == Int64(-EAGAIN) else {
                throw count == Int64(-ECONNREFUSED) ? .refused : .closed
            }
            return []
        }
        let text = try session.receive(Array(buffer.prefix(Int(count))))
        queue += session.takeOutput()
        heard = now
        guard !text.isEmpty else { return [] }
        do throws(LinkDeframer.Failure) {
            return try deframer.receive(text)
        } catch {
            throw .protocolViolation
        }
    }

    /// Queues a message; returns whether there was room for it.
    mutating func send(_ message: LinkMessage) -> Bool {
        do throws(LinkError) {
            try session.send(message.encoded())
        } catch {
            return false
        }
        queue += session.takeOutput()
        return waiting <= Self.queueLimit
    }

    /// Writes what the kernel takes.
    ///
    /// - Throws: if the connection must end.
    mutating func write() throws(LinkError) {
        queue += session.takeOutput()
        while head < queue.count {
            let written = kernel_write(descriptor, queue.span.extracting(head..<queue.count))
            guard written > 0 else {
                if head > queue.count / 2 {
                    queue.removeSubrange(..<head)
                    head = 0
                }
                guard written != Int64(-EAGAIN), written != Int64(-ENOTCONN) else { return }
                throw written == Int64(-ECONNREFUSED) ? .refused : .closed
            }
            head += Int(written)
        }
        queue.removeAll(keepingCapacity: queue.capacity <= Self.keptCapacity)
        head = 0
    }

    /// Bytes that may wait for a peer; beyond, the connection ends.
    static let queueLimit = 64 << 20
    private static let keptCapacity = 1 << 16
}
