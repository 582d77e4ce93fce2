/// Names an object in one worker's arrays: a place, and which of its tenants is meant.
///
/// The control plane hands them out, so a stale one meets an empty place or another generation
/// and never somebody else's media.
package struct Handle<Kind>: Hashable, Sendable, BitwiseCopyable {
    package var index: UInt32
    package var generation: UInt32

    package init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }
}

/// Tags that keep handles apart.
package enum HandleKind {
    package enum Transport {}
    package enum Publication {}
    package enum Slot {}
}

/// One ICE and DTLS association with a participant.
package typealias TransportID = Handle<HandleKind.Transport>
/// One m-line on which a participant sends.
package typealias PublicationID = Handle<HandleKind.Publication>
/// One m-line on which a participant receives.
package typealias SlotID = Handle<HandleKind.Slot>

/// Hands out handles for one worker and takes them back.
package struct HandleAllocator<Kind>: Sendable {
    private var generations: [UInt32] = []
    private var free: [UInt32] = []
    private let capacity: Int

    package init(capacity: Int) { self.capacity = capacity }

    package var used: Int { generations.count - free.count }
    package var available: Int { capacity - used }

    /// A handle that nobody else holds, or `nil` where all are taken.
    package mutating func allocate() -> Handle<Kind>? {
        if let index = free.popLast() {
            return Handle(index: index, generation: generations[Int(index)])
        }
        guard generations.count < capacity else { return nil }
        generations.append(1)
        return Handle(index: UInt32(generations.count - 1), generation: 1)
    }

    /// Takes a handle back; one that is stale is left alone.
    package mutating func release(_ handle: Handle<Kind>) {
        let index = Int(handle.index)
        guard index < generations.count, generations[index] == handle.generation else { return }
        generations[index] &+= 1
        free.append(handle.index)
    }
}
