import Contract

/// Splits a stream of bytes into lines.
struct LineBuffer {
    private var bytes: [UInt8] = []
    /// Offset of the next line.
    private var start = 0
    /// Offset up to which no newline was found.
    private var searched = 0
    let limit: Int

    init(limit: Int = LineBuffer.standardLimit) { self.limit = limit }

    /// Longest line that sfud writes, in bytes, without its newline.
    static let standardLimit = IPCRequest.lineLimit

    /// Lets `fill` append received bytes.
    mutating func append<Result>(_ fill: (inout [UInt8]) -> Result) -> Result {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        return fill(&bytes)
    }

    /// Returns the next complete line without its newline, or `nil` if none is complete.
    ///
    /// - Throws: `ClientError.protocolViolation` if the line is longer than the limit.
    mutating func next() throws(ClientError) -> [UInt8]? {
        guard let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
            searched = bytes.count
            guard bytes.count - start <= limit else { throw tooLong }
            return nil
        }
        guard end - start <= limit else { throw tooLong }
        defer {
            start = end + 1
            searched = start
        }
        return Array(bytes[start..<end])
    }

    private var tooLong: ClientError { .protocolViolation("a line of more than \(limit) bytes") }
}
