import CKernel

/// Byte queue of a connection's output; the caller bounds its length.
struct OutputQueue {
    private var bytes: [UInt8] = []
    private var head = 0

    var count: Int { bytes.count - head }
    /// Bytes written in total.
    private(set) var taken: UInt64 = 0

    mutating func append(line: [UInt8]) {
        bytes += line
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Writes until the connection blocks; returns the errno of the failed write, or `nil` if all
    /// is written.
    mutating func write(to descriptor: Int32) -> Int32? {
        while head < bytes.count {
            let written = kernel_write(descriptor, bytes.span.extracting(head..<bytes.count))
            guard written > 0 else {
                compact()
                return Int32(truncatingIfNeeded: -written)
            }
            head += Int(written)
            taken &+= UInt64(written)
        }
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
        head = 0
        return nil
    }

    /// Removes written bytes once they exceed half of the buffer, so that a byte moves at most
    /// once.
    private mutating func compact() {
        guard head > bytes.count / 2 else { return }
        bytes.removeSubrange(..<head)
        head = 0
    }

    private static let keptCapacity = 1 << 16
}
