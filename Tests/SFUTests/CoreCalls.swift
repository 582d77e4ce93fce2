import RTP
import WorkerInterface

@testable import SFU

/// Calls of the core's parts, with the parts that they are lent.
extension Core {
    func explain(_ slot: SlotID, at now: Instant) -> LayerExplanation? {
        allocator.explain(slot, at: now, transports, receiver, forwarder)
    }

    mutating func allocate(_ transport: TransportIndex, at now: Instant) {
        allocator.allocate(transport, at: now, &transports, &receiver, &forwarder)
    }

    mutating func retarget(
        _ slot: SlotIndex,
        at target: LayerTarget?,
        at now: Instant,
        bridge: UInt8 = 3
    ) {
        forwarder.retarget(slot, at: target, at: now, bridge: bridge, &transports, &receiver)
    }
}

/// Indexes by number, as a scenario knows them.
extension Index: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int) { self.init(value) }
}
