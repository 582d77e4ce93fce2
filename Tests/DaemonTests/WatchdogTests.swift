import Glibc
import Kernel
import RTP
import Testing

@testable import Daemon

/// K6: a stalled thread is detected, and nothing else is taken for one.
struct WatchdogTests {
    /// Two threads, of which one or both read their mailboxes every second.
    private struct Threads {
        var drainCount: [UInt64] = [5, 0]
        var now = Instant(nanoseconds: 1_000_000_000)
        var watchdog: Watchdog
        var asked = 0

        init() { watchdog = Watchdog(drainCount: drainCount, at: now) }

        mutating func pass(milliseconds: Int64, answering: Set<Int>) {
            for index in answering { drainCount[index] += 3 }
            now = now.advanced(milliseconds: milliseconds)
            if watchdog.isDue(drainCount: drainCount, at: now) { asked += 1 }
        }
    }

    @Test func `K-6 threads that answer are well for ever, and are asked once a second`() {
        var threads = Threads()
        for _ in 0..<1_000 { threads.pass(milliseconds: 250, answering: [0, 1]) }
        #expect(threads.asked == 250)
        #expect(threads.watchdog.allRespond)
        #expect(threads.watchdog.lost == nil)
    }

    @Test func `K-6 one that answers no more is first unwell and then lost`() {
        var threads = Threads()
        threads.pass(milliseconds: 1_000, answering: [0, 1])
        var history: [String] = []
        for _ in 0..<12 {
            threads.pass(milliseconds: 1_000, answering: [0])
            let (allRespond, lost) = (threads.watchdog.allRespond, threads.watchdog.lost)
            history.append(lost.map { "lost \($0)" } ?? (allRespond ? "well" : "unwell"))
        }
        let expected =
            ["well", "well"] + Array(repeating: "unwell", count: 8) + ["lost 1", "lost 1"]
        #expect(history == expected)
    }

    @Test func `K-6 one that comes back late is well again`() {
        var threads = Threads()
        for _ in 0..<9 { threads.pass(milliseconds: 1_000, answering: [0]) }
        #expect(!threads.watchdog.allRespond)
        threads.pass(milliseconds: 1_000, answering: [0, 1])
        #expect(threads.watchdog.allRespond)
        #expect(threads.watchdog.lost == nil)
    }

    @Test func `K-6 a process that stood still as a whole has missed one answer, not forty`() {
        var threads = Threads()
        threads.pass(milliseconds: 40_000, answering: [])
        #expect(threads.watchdog.allRespond)
        #expect(threads.watchdog.lost == nil)
    }

    @Test func `K-6 a worker answers a ring, with nothing to do`() throws {
        try WorkerTests.withWorker { worker, _ in
            let before = worker.commands.drainCount
            worker.commands.ring()
            let end = Instant.monotonic().advanced(milliseconds: 10_000)
            while worker.commands.drainCount == before, Instant.monotonic() < end { sched_yield() }
            #expect(worker.commands.drainCount > before)
        }
    }
}

/// Tests of the readiness and watchdog notices to a service manager.
struct ServiceManagerTests {
    @Test(
        arguments: [
            ([:], false),
            (["WATCHDOG_USEC": "20000000"], true),
            (["WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "17"], true),
            (["WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "16"], false),
        ] as [([String: String], Bool)]
    )
    func `K-6 WATCHDOG_USEC enables it`(environment: [String: String], isWatched: Bool) {
        let manager = ServiceManager(environment: environment, processID: 17)
        #expect(manager.isWatching == isWatched)
    }
}
