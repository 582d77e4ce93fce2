package import RTP
package import WorkerInterface

/// The batch's way out: to the other workers, to the subscribers here, and before other batches.
extension Core {
    /// Sends the received batch to its subscribers, small audiences first.
    ///
    /// Returns `true` if the output is full and more is left: send it and call again.
    package mutating func flush(into output: inout Batch, at now: Instant) -> Bool {
        defer { collectEvents() }
        return forwarder.flush(into: &output, at: now, &transports, &receiver)
    }

    /// Relays the received batch to its mirrors, and sends requests of the mirrors here to their
    /// homes.
    ///
    /// Call it once for each batch, before `flush`, and publish the port at once: the other workers
    /// then send while this one does.
    package mutating func relay(into port: inout RelayPort, at now: Instant) {
        precondition(
            relays.relayedCount == 0 || !forwarder.cursor.isUnderWay,
            "a batch is under way"
        )
        relays.relay(into: &port, at: now, &transports, &receiver, &forwarder, &allocator)
    }

    /// Receives packets and requests from other workers, as many as a batch may hold.
    ///
    /// Flush after it. Returns `true` if more is waiting.
    package mutating func receive(from port: inout RelayPort, at now: Instant) -> Bool {
        relays.receive(from: &port, at: now, &transports, &receiver, &forwarder, &allocator)
    }

    /// Whether a datagram may be handled before the preempted batch.
    package func mayOvertake(_ datagram: Span<UInt8>, on path: Path) -> Bool {
        forwarder.mayOvertake(datagram, on: path, transports, receiver)
    }

    /// Puts the batch under way aside.
    ///
    /// Until `resumePreempted`, only datagrams that may overtake are received, nothing expires and
    /// no command is carried out.
    package mutating func preempt() { forwarder.preempt(&receiver) }

    /// Resumes the preempted batch, once the batch that overtook it is sent.
    package mutating func resumePreempted() { forwarder.resumePreempted(&receiver) }

    /// Processes the worker's load sample, and reduces or restores video accordingly.
    ///
    /// It runs between two batches, so no packet pays for it.
    package mutating func noteLoad(_ sample: LoadSample, at now: Instant) {
        let pressure = overload.noteLoad(
            sample,
            at: now,
            &transports,
            &receiver,
            &forwarder,
            &allocator
        )
        if let pressure { emit(.pressure(pressure, transports: transports.count)) }
    }

    /// Time of the next call of `noteLoad`; `nil` if none is needed.
    package var loadSampleDeadline: Instant? { overload.gauge.deadline }

    package func needsLoadSample(at now: Instant) -> Bool { overload.gauge.isDue(at: now) }
}
