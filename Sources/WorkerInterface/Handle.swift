/// Generational handle of an object in one worker's arrays: an index and a generation.
///
/// The control plane allocates handles. A stale one finds an empty place or another generation,
/// never another participant's media.
package struct Handle<Kind>: Hashable, Sendable, BitwiseCopyable {
    package var index: UInt32
    package var generation: UInt32

    package init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }
}

/// Type tags that tell kinds of handles apart.
package enum HandleKind {
    package enum Transport {}
    package enum Publication {}
    package enum Slot {}
}

/// Handle of a transport: one ICE and DTLS association with a participant.
package typealias TransportID = Handle<HandleKind.Transport>
/// Handle of a publication: one m-line on which a participant sends.
package typealias PublicationID = Handle<HandleKind.Publication>
/// Handle of a slot: one m-line on which a participant receives.
package typealias SlotID = Handle<HandleKind.Slot>

/// Allocator of one worker's handles.
package struct HandleAllocator<Kind>: Sendable {
    private var generations: [UInt32] = []
    private var free: [UInt32] = []
    private let capacity: Int

    package init(capacity: Int) { self.capacity = capacity }

    package var used: Int { generations.count - free.count }
    package var available: Int { capacity - used }

    /// Returns an unused handle, or `nil` if all are taken.
    package mutating func allocate() -> Handle<Kind>? {
        if let index = free.popLast() {
            return Handle(index: index, generation: generations[Int(index)])
        }
        guard generations.count < capacity else { return nil }
        generations.append(1)
        return Handle(index: UInt32(generations.count - 1), generation: 1)
    }

    /// Releases a handle; a stale one is ignored.
    package mutating func release(_ handle: Handle<Kind>) {
        let index = Int(handle.index)
        guard index < generations.count, generations[index] == handle.generation else { return }
        generations[index] &+= 1
        free.append(handle.index)
    }
}
