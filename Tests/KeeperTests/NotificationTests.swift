import Glibc
import Kernel
import TestSupport
import Testing

@testable import Keeper

/// Notifications of the child, and the descriptors that it stores.
struct NotificationTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var expected: @Sendable (inout Notification) -> Void

        init(
            _ name: String,
            _ text: String,
            _ expected: @escaping @Sendable (inout Notification) -> Void
        ) {
            testDescription = name
            self.text = text
            self.expected = expected
        }
    }

    static let rows = [
        Row("nothing", "") { _ in },
        Row("ready", "READY=1\nSTATUS=all is well") {
            $0.isReady = true
            $0.forwarded = ["READY=1", "STATUS=all is well"]
        },
        Row("not ready", "READY=10\nREADY\n=1") { $0.forwarded = ["READY=10"] },
        Row("stopping", "STOPPING=1") {
            $0.isStopping = true
            $0.forwarded = ["STOPPING=1"]
        },
        Row("alive", "WATCHDOG=1") {
            $0.watchdog = .alive
            $0.forwarded = ["WATCHDOG=1"]
        },
        Row("trigger", "WATCHDOG=trigger") {
            $0.watchdog = .trigger
            $0.forwarded = ["WATCHDOG=trigger"]
        },
        Row("another time for the watchdog", "WATCHDOG_USEC=3000000") {
            $0.watchdogMicroseconds = 3_000_000
        },
        Row("no time for the watchdog", "WATCHDOG_USEC=-1\nWATCHDOG_USEC=99999999999999999999") {
            _ in
        },
        Row("storing", "FDSTORE=1\nFDPOLL=0\nFDNAME=udp.0.1") {
            $0.stores = true
            $0.name = "udp.0.1"
        },
        Row("a name with a colon", "FDSTORE=1\nFDNAME=a:b") { $0.stores = true },
        Row("a name that is too long", "FDSTORE=1\nFDNAME=" + String(repeating: "a", count: 256)) {
            $0.stores = true
        },
        Row("removing", "FDSTOREREMOVE=1\nFDNAME=ipc") {
            $0.removes = true
            $0.name = "ipc"
        },
        Row("a barrier", "BARRIER=1") { _ in },
    ]

    @Test(arguments: rows)
    func `is read as sd_notify(3) says`(_ row: Row) {
        var expected = Notification([])
        row.expected(&expected)
        #expect(Notification(Array(row.text.utf8)) == expected)
    }

    @Test func `garbage is nothing`() {
        #expect(Notification([0xff, 0x00, 0x3d, 0x0a, 0x80]) == Notification([]))
    }

    @Test func `descriptors are stored once, up to the limit, and closed when removed`() {
        let (first, second, third) = (WatchedDescriptor(), WatchedDescriptor(), WatchedDescriptor())
        var stored = StoredDescriptors(limit: 2)
        #expect(stored.add(first.descriptor, as: "first") == .stored)
        #expect(stored.add(dup(first.descriptor), as: "copy") == .known)
        #expect(stored.add(second.descriptor, as: "second") == .stored)
        #expect(stored.add(third.descriptor, as: "third") == .full)
        #expect(first.isOpen && second.isOpen && !third.isOpen)
        #expect(stored.all.map(\.name) == ["first", "second"])
        stored.remove("nothing")
        stored.remove("second")
        #expect(first.isOpen && !second.isOpen)
        #expect(stored.all.map(\.name) == ["first"])
        stored.remove("first")
        #expect(!first.isOpen, "the copy is closed too")
        for descriptor in [first, second, third] { descriptor.finish() }
    }
}
