import CKernel
import Glibc
import RTP
import Testing

@testable import Sockets

/// Two ends of a byte stream, like a TCP connection; the test holds the far end.
struct StreamPair: ~Copyable {
    let near: Int32
    let far: Int32

    /// Makes a pair; with a small `sendBuffer` the near end is full as soon as a test wants.
    init(sendBuffer: Int32 = 1 << 20) throws {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        (near, far) = (ends[0], ends[1])
        _ = kernel_set_send_buffer(near, sendBuffer)
    }

    deinit {
        kernel_close(near)
        kernel_close(far)
    }

    /// Writes at the far end.
    func write(_ bytes: some Collection<UInt8>) { Self.write(bytes, to: far) }

    static func write(_ bytes: some Collection<UInt8>, to descriptor: Int32) {
        _ = kernel_write(descriptor, Array(bytes).span)
    }

    /// Reads at the far end.
    func take(atMost limit: Int = .max) -> [UInt8] { Self.take(from: far, atMost: limit) }

    static func take(from descriptor: Int32, atMost limit: Int = .max) -> [UInt8] {
        var all: [UInt8] = []
        while all.count < limit {
            var bytes = [UInt8](repeating: 0, count: min(65_536, limit - all.count))
            var places = bytes.mutableSpan
            let count = kernel_read(descriptor, &places)
            guard count > 0 else { break }
            all += bytes[..<Int(count)]
        }
        return all
    }

    /// Returns the datagrams in `bytes`, and the number of bytes of an incomplete one.
    static func frames(in bytes: [UInt8]) -> (frames: [[UInt8]], left: Int) {
        var frames: [[UInt8]] = []
        var rest = bytes[...]
        while rest.count >= 2 {
            let start = rest.startIndex
            let length = Int(rest[start]) << 8 | Int(rest[start + 1])
            guard rest.count >= 2 + length else { break }
            frames.append(Array(rest[(start + 2)..<(start + 2 + length)]))
            rest = rest[(start + 2 + length)...]
        }
        return (frames, rest.count)
    }

    static func framed(_ datagram: [UInt8]) -> [UInt8] {
        [UInt8(datagram.count >> 8), UInt8(datagram.count & 0xff)] + datagram
    }
}
