internal import CKernel
import Kernel
package import RTP
import WorkerInterface

// Accepting connections.
extension TCPConnections {
    /// Accepts waiting connections, a bounded number at a time.
    package mutating func accept(
        _ listener: Int,
        with poller: borrowing Poller,
        at now: Instant
    ) {
        for _ in 0..<Self.acceptsPerTurn {
            switch listeners[listener].accept() {
            case .connection(let descriptor, let remote):
                if let cause = add(descriptor, remote, poller, at: now) {
                    counters[cause] &+= 1
                    kernel_close(descriptor)
                }
            case .gone: counters[.failed] &+= 1
            case .nobody: return
            case .noDescriptors: return refuseConnection(listener)
            }
        }
    }

    /// Adds a connection; returns the cause if it is refused.
    private mutating func add(
        _ descriptor: Int32,
        _ remote: Address,
        _ poller: borrowing Poller,
        at now: Instant
    ) -> TCPConnectionStatistics.Cause? {
        let source = TCPSource(remote)
        guard sources[source] < limits.connectionsPerAddress else { return .addressLimit }
        if counters.unchecked >= limits.unchecked { endOldestUnchecked() }
        guard let number = table.next else { return .limit }
        do throws(SystemError) {
            let token = Subject.connection(number).token
            try poller.add(descriptor, for: .readable, token: token)
        } catch {
            return .failed
        }
        table.insert(
            TCPConnection(
                descriptor: descriptor,
                path: Path(remote: remote, local: number),
                lastReceived: now,
                sender: TCPSender(limits: limits.queue)
            )
        )
        sources[source] += 1
        counters.accepted &+= 1
        counters.unchecked += 1
        if nextSweep == nil { nextSweep = now.advanced(milliseconds: Self.sweepMilliseconds) }
        return nil
    }

    private mutating func endOldestUnchecked() {
        var oldest: (number: UInt16, since: Instant)?
        for place in 0..<table.capacity {
            guard let number = table.number(at: place), !table[number].isValidated else { continue }
            let since = table[number].lastReceived
            if let known = oldest, known.since <= since { continue }
            oldest = (number, since)
        }
        if let oldest { end(oldest.number, .crowded) }
    }

    /// Accepts and closes one connection when no descriptor is left.
    ///
    /// The listener would otherwise stay ready and the worker would spin.
    private mutating func refuseConnection(_ listener: Int) {
        guard let spare = spareDescriptor else { return }
        kernel_close(spare)
        if case .connection(let descriptor, _) = listeners[listener].accept() {
            counters[.descriptors] &+= 1
            kernel_close(descriptor)
        }
        spareDescriptor = Self.openSpare()
    }

    /// Opens a descriptor to keep in reserve; returns `nil` if none is left.
    static func openSpare() -> Int32? {
        let descriptor = kernel_open_null()
        return descriptor < 0 ? nil : descriptor
    }

    private static let acceptsPerTurn = 16
}
