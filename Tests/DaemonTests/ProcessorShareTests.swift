import CKernel
import Foundation
import Testing

@testable import Daemon

/// Nice values of a thread in a hurry.
struct ProcessorShareTests {
    @Test(arguments: [5, 0, -15] as [Int32])
    func `a thread in a hurry gets its own nice value back`(own: Int32) async {
        let seen = await Self.inThread { () -> [Int32]? in
            // Without the right to lower values again, a hurry is refused.
            let mayLower = kernel_set_niceness(ProcessorShare.hurriedNiceness) == 0
            guard kernel_set_niceness(own) == 0 else { return nil }
            var share = ProcessorShare()
            share.hurry(true)
            let hurried = kernel_niceness()
            share.hurry(true)
            share.hurry(false)
            return [mayLower ? min(own, -10) : own, hurried, kernel_niceness()]
        }
        guard let seen else { return }
        #expect(seen[1] == seen[0])
        #expect(seen[2] == own)
    }

    /// Runs `body` in a thread of its own, whose nice value is nobody else's.
    private static func inThread<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value
    ) async -> Value {
        await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: body()) }.start()
        }
    }
}
