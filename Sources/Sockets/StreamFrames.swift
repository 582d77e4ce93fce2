import CKernel
import SFU

/// Frames out of the bytes of a connection: each has its length before it, in two bytes
/// (RFC 4571 §2).
///
/// One is enough for all connections of a worker. What a connection has of a frame that is not
/// whole yet lies with the connection, and goes before what is read next.
package struct StreamFrames: ~Copyable {
    /// Bytes of the largest frame, its length not counted: a datagram may have no more.
    static let maximumLength = Batch.maximumLength
    static let headerLength = 2
    /// Bytes of one read, at most.
    static let readLength = 16_384

    /// What a connection's bytes say next.
    enum Next: Equatable {
        /// A frame, and where it lies.
        case frame(Range<Int>)
        /// A frame that is longer than one may be: nothing after it can be made sense of.
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
    /// Whether the last read filled all the room that it had.
    package private(set) var isFull = false

    package init() {}

    /// Begins anew, with what the last read of this connection had left over.
    mutating func begin(with rest: [UInt8]) {
        precondition(rest.count < Self.headerLength + Self.maximumLength)
        for index in rest.indices { bytes[index] = rest[index] }
        begin = 0
        end = rest.count
    }

    /// Reads once; returns how many bytes came, 0 at the end, or a negated errno.
    mutating func read(from descriptor: Int32) -> Int64 {
        let from = end
        var places = bytes.mutableSpan
        var room = places._mutatingExtracting(from..<from + Self.readLength)
        let count = kernel_read(descriptor, &room)
        if count > 0 { end += Int(count) }
        isFull = count == Self.readLength
        return count
    }

    /// Takes the next frame, or says why there is none.
    ///
    /// Empty frames mean nothing and are left out.
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

    /// Leaves what is not whole with the connection.
    func leave(in rest: inout [UInt8]) {
        rest.removeAll(keepingCapacity: true)
        rest.append(contentsOf: bytes[begin..<end])
    }

    /// The bytes of a frame.
    package subscript(frame: Range<Int>) -> Span<UInt8> {
        @_lifetime(borrow self)
        get { bytes.span.extracting(frame) }
    }
}

/// Datagrams side by side, each with its length before it: what one write takes.
struct FramedOutput: ~Copyable {
    private var bytes = [UInt8](
        repeating: 0,
        count: StreamLane.datagramsPerWrite * (StreamFrames.headerLength + Batch.stride)
    )
    package private(set) var count = 0

    mutating func removeAll() { count = 0 }

    /// Adds a datagram; returns `false` where there is no room for it.
    mutating func append(_ datagram: Span<UInt8>) -> Bool {
        let start = count + StreamFrames.headerLength
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

    /// The bytes of `range`.
    func copy(_ range: Range<Int>) -> [UInt8] { Array(bytes[range]) }
}
