import CKernel
import ControlPlane
import Foundation
import Kernel
import RTP
import Testing

@testable import Daemon

struct LogTests {
    static let line = LogLine(
        unixNanoseconds: 1_763_600_000_123_456_789,
        level: .warning,
        message: "it happened"
    )

    struct Field: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var value: String
        var text: String
    }

    static let fields = [
        Field(testDescription: "plain", value: "127.0.0.1:5004", text: "127.0.0.1:5004"),
        Field(testDescription: "empty", value: "", text: "\"\""),
        Field(testDescription: "space", value: "a b", text: "\"a b\""),
        Field(testDescription: "quote", value: "a\"b", text: "\"a\\\"b\""),
        Field(testDescription: "backslash", value: "a\\", text: "\"a\\\\\""),
        Field(testDescription: "equals sign", value: "a=b", text: "\"a=b\""),
        Field(
            testDescription: "a forged line",
            value: "x\ntime=0 level=error",
            text: "\"x\\ntime=0 level=error\""
        ),
        Field(testDescription: "escape sequence", value: "\u{1b}[2J", text: "\"\\u{1b}[2J\""),
        Field(testDescription: "other scripts", value: "ä", text: "\"ä\""),
    ]

    @Test(arguments: fields)
    func `a field can neither end its line nor forge another`(_ field: Field) {
        let start = "time=2025-11-20T00:53:20.123Z level=warning msg=\"it happened\" key="
        #expect(Self.line.text([("key", field.value)]) == start + field.text)
    }

    @Test
    func `one line a second of a cause, and the count of the others`() {
        var limiter = LogLimiter()
        let key = LogLimiter.Key(level: .warning, message: "flood", cause: "")
        let other = LogLimiter.Key(level: .warning, message: "flood", cause: "another")
        var now = Instant(nanoseconds: 0)
        var written: [UInt64] = []
        for _ in 0..<1_000_000 {
            if let held = limiter.admit(key, at: now) { written.append(held) }
            now = now.advanced(nanoseconds: 10_000)
        }
        #expect(written == [0] + Array(repeating: 99_999, count: 9))
        #expect(limiter.isHolding)
        #expect(limiter.admit(other, at: now) == 0)
        let rest = limiter.takeHeld(at: now)
        #expect(rest.map(\.1) == [99_999])
        #expect(!limiter.isHolding)
    }

    @Test
    func `causes are bounded`() {
        var limiter = LogLimiter()
        for number in 0..<10 * LogLimiter.capacity {
            let key = LogLimiter.Key(level: .info, message: "\(number)", cause: "")
            #expect(limiter.admit(key, at: Instant(nanoseconds: 0)) == 0)
        }
    }

    @Test
    func `writes what its level admits`() {
        let pipe = Pipe()
        let log = Log(level: .info, descriptor: pipe.fileHandleForWriting.fileDescriptor)
        log.debug("hidden")
        log.info("shown", [("number", "1")])
        log.finish(milliseconds: 5_000)
        pipe.fileHandleForWriting.closeFile()
        let text = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        #expect(text.contains("level=info msg=\"shown\" number=1\n"))
        #expect(!text.contains("hidden"))
    }

    @Test
    func `a pipe that nobody reads holds nobody up`() {
        // The pipe may end while the log's thread still writes, as in the daemon.
        _ = signal(SIGPIPE, SIG_IGN)
        let pipe = Pipe()
        let log = Log(level: .info, descriptor: pipe.fileHandleForWriting.fileDescriptor)
        let start = Instant.monotonic()
        for number in 0..<20_000 {
            log.info("line", cause: "\(number)", [])
        }
        #expect(Instant.monotonic().milliseconds(since: start) < 5_000)
        // The thread blocks in a write until the reader closes. It has to end before the descriptor
        // does, or it would write into whatever another test opens next.
        pipe.fileHandleForReading.closeFile()
        log.finish(milliseconds: 10_000)
        pipe.fileHandleForWriting.closeFile()
    }
}

extension Log {
    fileprivate func info(_ message: String, cause: String, _ fields: [(String, String)]) {
        log(.info, message, cause: cause, fields)
    }
}
