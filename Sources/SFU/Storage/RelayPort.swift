import RTP

/// Rings between all workers, one for each ordered pair.
///
/// Safe: the memory lives as long as the mesh, and every port retains the mesh.
@safe
package final class RelayMesh: @unchecked Sendable {
    package let workers: Int
    private let rings: UnsafeMutablePointer<RelayRing>

    package init(workers: Int) {
        precondition(workers > 0, "there is at least one worker")
        self.workers = workers
        unsafe rings = .allocate(capacity: workers * workers)
        for from in 0..<workers {
            for to in 0..<workers where from != to {
                unsafe (rings + from * workers + to).initialize(to: RelayRing())
            }
        }
    }

    deinit {
        for from in 0..<workers {
            for to in 0..<workers where from != to {
                unsafe rings[from * workers + to].deallocate()
            }
        }
        unsafe rings.deallocate()
    }

    /// Returns the ring ends of one worker; call it once for each.
    package func port(of worker: Int) -> RelayPort {
        precondition(worker >= 0 && worker < workers, "there is no such worker")
        return RelayPort(self, of: worker)
    }

    fileprivate func ring(from: Int, to: Int) -> RelayRing {
        unsafe rings[from * workers + to]
    }
}

/// One worker's ends of the rings from and to all others.
///
/// Safe: indices are checked, and one thread owns the port, so it is each ring's only writer or
/// reader.
@safe
package struct RelayPort: ~Copyable {
    package let worker: Int
    package let workers: Int
    private let writers: UnsafeMutablePointer<RelayWriter>
    private let readers: UnsafeMutablePointer<RelayReader>
    private let mesh: RelayMesh
    /// Offset of the ring to read first, rotated so that no ring starves another.
    private var turn = 0

    fileprivate init(_ mesh: RelayMesh, of worker: Int) {
        self.mesh = mesh
        self.worker = worker
        workers = mesh.workers
        unsafe writers = .allocate(capacity: mesh.workers)
        unsafe readers = .allocate(capacity: mesh.workers)
        for other in 0..<mesh.workers where other != worker {
            let outgoing = mesh.ring(from: worker, to: other)
            unsafe (writers + other).initialize(to: RelayWriter(outgoing))
            let incoming = mesh.ring(from: other, to: worker)
            unsafe (readers + other).initialize(to: RelayReader(incoming))
        }
    }

    deinit {
        for other in 0..<workers where other != worker {
            unsafe (writers + other).deinitialize(count: 1)
            unsafe (readers + other).deinitialize(count: 1)
        }
        unsafe writers.deallocate()
        unsafe readers.deallocate()
    }

    /// Whether there is a ring to and from this worker.
    func reaches(_ other: Int) -> Bool { other >= 0 && other < workers && other != worker }

    /// Writes a message into the ring to another worker; returns `false` if it is full.
    mutating func write(
        _ message: RelayMessage,
        _ packet: Span<UInt8>,
        to other: Int
    ) -> Bool {
        self[writer: other].write(message, packet)
    }

    /// Makes the messages written to another worker visible to it; returns `false` if there are
    /// none.
    package mutating func publish(to other: Int) -> Bool {
        guard reaches(other) else { return false }
        return self[writer: other].publish()
    }

    /// Returns whether any ring has a message to read.
    package mutating func hasMessages() -> Bool {
        for other in 0..<workers where other != worker {
            if !self[reader: other].isEmpty() { return true }
        }
        return false
    }

    /// Returns the offset from `worker` of the ring to read first, one further with each call.
    mutating func takeTurn() -> Int {
        turn = turn + 1 < workers ? turn + 1 : 1
        return turn
    }

    /// Ring to another worker.
    private subscript(writer other: Int) -> RelayWriter {
        unsafeAddress {
            precondition(reaches(other), "there is no ring to that worker")
            return unsafe UnsafePointer(writers + other)
        }
        unsafeMutableAddress {
            precondition(reaches(other), "there is no ring to that worker")
            return unsafe writers + other
        }
    }

    /// Ring from another worker.
    subscript(reader other: Int) -> RelayReader {
        unsafeAddress {
            precondition(reaches(other), "there is no ring from that worker")
            return unsafe UnsafePointer(readers + other)
        }
        unsafeMutableAddress {
            precondition(reaches(other), "there is no ring from that worker")
            return unsafe readers + other
        }
    }
}
