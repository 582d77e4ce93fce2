package import RTP

extension Room {
    /// State shared by all rooms, lent to one of them for a call.
    package struct Shared: Sendable {
        /// Handle pools, one for each worker.
        package var identifiers: [WorkerIdentifiers]
        package var locals: [LocalParameters]
        /// Workers of other nodes; `nil` without a cluster.
        package var remote: RemotePlaces?
        package var random: RandomSource
        package var lastSubscription: UInt64 = 0
        /// Service for recordings and other outputs; `nil`: not available.
        package var taps: TapService?
        /// Limits and permitted schemes of live streams.
        package var streaming = StreamingService()
        /// Limits of RTP forwards.
        package var outputs = RTPForwardService()
        package var limits: Limits
        /// Load of the workers, for admission.
        package var load: WorkerLoadTracker
        package var memory: MemoryAdmission
        /// Unix time, in seconds; set before each call.
        package var unixTime = 0.0
        /// The same moment on the workers' monotonic clock.
        package var now = Instant(nanoseconds: 0)

        package init(
            identifiers: [WorkerIdentifiers],
            locals: [LocalParameters],
            random: RandomSource,
            limits: Limits
        ) {
            self.identifiers = identifiers
            self.locals = locals
            self.random = random
            self.limits = limits
            load = WorkerLoadTracker(workers: locals.count, loadPercent: limits.workerLoadPercent)
            memory = MemoryAdmission(limitMegabytes: limits.memoryMegabytes)
        }

        /// Throws `4029 limit-reached` if there is no memory, or no worker with time, for another
        /// transport.
        package mutating func refuseTransport() throws(CallError) {
            try memory.refuseMore()
            try load.refuseTransport()
        }
    }

    /// Limits of one room; exceeding one is refused with `4029 limit-reached`.
    package struct Limits: Hashable, Sendable {
        /// Participants, unless the room's settings have a lower limit.
        package var participantsPerRoom = 1_000
        package var transportsPerParticipant = 2
        package var subscriptionsPerParticipant = 100
        /// Largest accepted imbalance before a room spreads to another worker, in transports.
        ///
        /// It is the difference between the least loaded of the room's workers and the least loaded
        /// of all.
        package var workerSpread = 8
        /// Load at which a worker takes no new participants, in percent of its time.
        package var workerLoadPercent = 85
        /// Resident memory at which nobody new is admitted, in MiB (2^20 bytes); 0: no limit.
        package var memoryMegabytes = 0

        package init() {}
    }
}
