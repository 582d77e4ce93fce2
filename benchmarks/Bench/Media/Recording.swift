import Foundation

/// Encoded frames that are sent in a loop; only the first is a keyframe.
final class Recording: Sendable {
    struct Frame: Sendable {
        var start: Int
        var length: Int
    }

    let bytes: [UInt8]
    let frames: [Frame]

    /// Splits `bytes` into frames of these lengths.
    init(_ bytes: [UInt8], lengths: [Int]) {
        self.bytes = bytes
        var start = 0
        frames = lengths.map { length in
            defer { start += length }
            return Frame(start: start, length: length)
        }
        precondition(start == bytes.count && !lengths.isEmpty, "frames are all there is")
    }

    /// Calls `body` with `length` bytes of a frame, from `offset` on.
    func withPart<Value>(
        _ frame: Int,
        _ offset: Int,
        _ length: Int,
        _ body: (Span<UInt8>) -> Value
    ) -> Value {
        let start = frames[frame].start + offset
        // A span cannot be borrowed from a class's stored property.
        let bytes = self.bytes
        return body(bytes.span.extracting(start..<start + length))
    }
}

// File format of recordings: a count, the lengths, the bytes; numbers are 32-bit big-endian.
extension Recording {
    /// Reads a file written by `write`; returns `nil` if it is missing or damaged.
    static func read(_ path: String) -> Recording? {
        guard let data = FileManager.default.contents(atPath: path), data.count >= 4 else {
            return nil
        }
        let bytes = [UInt8](data)
        func number(_ index: Int) -> Int {
            bytes[4 * index..<4 * index + 4].reduce(0) { $0 << 8 | Int($1) }
        }
        let count = number(0)
        guard (1...100_000).contains(count), bytes.count >= 4 + 4 * count else { return nil }
        let lengths = (1...count).map(number)
        let body = Array(bytes[(4 + 4 * count)...])
        guard lengths.reduce(0, +) == body.count else { return nil }
        return Recording(body, lengths: lengths)
    }

    /// Writes the file atomically.
    func write(_ path: String) throws {
        var file: [UInt8] = []
        for number in [frames.count] + frames.map(\.length) {
            file.append(UInt64(number), bytes: 4)
        }
        try Data(file + bytes).write(to: URL(filePath: path), options: .atomic)
    }
}

extension [UInt8] {
    /// Appends the low `bytes` bytes of `value`, the highest first.
    mutating func append(_ value: UInt64, bytes: Int) {
        for position in stride(from: bytes - 1, through: 0, by: -1) {
            append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(position))))
        }
    }
}
