import CKernel
import SFU

/// Deframer for the bytes of a TCP connection: a two-byte length precedes each frame (RFC 4571 §2).
///
/// One instance serves all connections of a worker. The incomplete frame of a connection is stored
/// with the connection and put before the bytes that are read next.
package struct RFC4571Deframer: ~Copyable {
    /// Length of the largest frame without its header, in bytes: that of the largest datagram.
    static let maximumLength = Batch.maximumLength
    static let headerLength = 2
    /// Maximum number of bytes of one read.
    static let readLength = 16_384

    /// Result of parsing a connection's bytes.
    enum Next: Equatable {
        /// A frame, and its position in the buffer.
        case frame(Range<Int>)
        /// A frame longer than allowed: the rest of the stream cannot be parsed.
        case oversized
        /// Part of a frame, or nothing.
        case rest
    }

    private var bytes = [UInt8](
        repeating: 0,
        count: headerLength + maximumLength + readLength
    )
    private var begin = 0
    private var end = 0
    /// Whether the last read filled all the space it had, so that more may be waiting.
    package private(set) var isFull = false

    package init() {}

    /// Starts over with the bytes left by this connection's last read.
    mutating func begin(with rest: [UInt8]) {
        precondition(rest.count < Self.headerLength + Self.maximumLength)
        for index in rest.indices { bytes[index] = rest[index] }
        begin = 0
        end = rest.count
    }

    /// Reads once; returns the number of bytes, 0 at the end of the stream, or a negated errno.
    mutating func read(from descriptor: Int32) -> Int64 {
        let from = end
        var places = bytes.mutableSpan
        var room = places._mutatingExtracting(from..<from + Self.readLength)
        let count = kernel_read(descriptor, &room)
        if count > 0 { end += Int(count) }
        isFull = count == Self.readLength
        return count
    }

    /// Returns the next frame, or the reason why there is none.
    ///
    /// Empty frames have no meaning and are skipped.
    mutating func next() -> Next {
        while end - begin >= Self.headerLength {
            let length = Int(bytes[begin]) << 8 | Int(bytes[begin + 1])
            guard length <= Self.maximumLength else { return .oversized }
            let start = begin + Self.headerLength
            guard end - start >= length else { return .rest }
            begin = start + length
            if length > 0 { return .frame(start..<begin) }
        }
        return .rest
    }

    /// Stores the incomplete frame with the connection.
    func leave(in rest: inout [UInt8]) {
        rest.removeAll(keepingCapacity: true)
        rest.append(contentsOf: bytes[begin..<end])
    }

    /// Bytes of a frame.
    package subscript(frame: Range<Int>) -> Span<UInt8> {
        @_lifetime(borrow self)
        get { bytes.span.extracting(frame) }
    }
}

/// Buffer of framed datagrams for one write, each after its two-byte length.
struct FramedOutput: ~Copyable {
    private var bytes = [UInt8](
        repeating: 0,
        count: TCPSender.datagramsPerWrite * (RFC4571Deframer.headerLength + Batch.stride)
    )
    package private(set) var count = 0

    mutating func removeAll() { count = 0 }

    /// Appends a datagram; returns `false` if there is no room for it.
    mutating func append(_ datagram: Span<UInt8>) -> Bool {
        let start = count + RFC4571Deframer.headerLength
        guard start + datagram.count <= bytes.count else { return false }
        bytes[count] = UInt8(truncatingIfNeeded: datagram.count >> 8)
        bytes[count + 1] = UInt8(truncatingIfNeeded: datagram.count)
        var places = bytes.mutableSpan
        for index in datagram.indices { places[start + index] = datagram[index] }
        count = start + datagram.count
        return true
    }

    var span: Span<UInt8> {
        @_lifetime(borrow self)
        get { bytes.span.extracting(0..<count) }
    }

    /// Copies the bytes of `range`.
    func copy(_ range: Range<Int>) -> [UInt8] { Array(bytes[range]) }
}
