/// Cuts a stream of bytes into lines.
struct LineBuffer {
    private var bytes: [UInt8] = []
    /// Where the next line starts.
    private var start = 0
    /// Up to where no newline was found.
    private var searched = 0
    let limit: Int

    init(limit: Int = LineBuffer.standardLimit) { self.limit = limit }

    /// Bytes of the longest line that sfud writes at its largest `ipcOutputBytes`.
    ///
    /// sfud is trusted, and a client that gave up on a long reply would ask for it again for ever.
    static let standardLimit = 16 << 30

    /// Lets `fill` append what has come.
    mutating func append<Result>(_ fill: (inout [UInt8]) -> Result) -> Result {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        return fill(&bytes)
    }

    /// The next whole line without its newline, if it is there.
    ///
    /// - Throws: `ClientError.protocolViolation` where the line is longer than the limit.
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
