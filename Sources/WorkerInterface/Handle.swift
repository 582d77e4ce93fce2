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

/// Coded as one number: the generation above the index.
extension Handle: Codable {
    package init(from decoder: any Decoder) throws {
        let number = try decoder.singleValueContainer().decode(Int64.self)
        let bits = UInt64(bitPattern: number)
        self.init(
            index: UInt32(truncatingIfNeeded: bits),
            generation: UInt32(truncatingIfNeeded: bits >> 32)
        )
    }

    package func encode(to encoder: any Encoder) throws {
        let bits = UInt64(generation) << 32 | UInt64(index)
        var container = encoder.singleValueContainer()
        try container.encode(Int64(bitPattern: bits))
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
    /// Generation of indices that have not been used yet.
    private var first: UInt32 = 1
    /// Highest generation that any handle has or had.
    package private(set) var highest: UInt32 = 1

    package init(capacity: Int) { self.capacity = capacity }

    /// Makes the pool of a process that continues another's handles.
    package mutating func restore(_ used: [Handle<Kind>], above highest: UInt32) {
        self = Self(capacity: capacity, used: used, above: highest)
    }

    /// Makes the allocator of a process that continues another's handles.
    ///
    /// Handles of free indices get generations above `highest`, so that none is given twice. A
    /// handle whose index is not below the capacity is left out.
    package init(capacity: Int, used: some Sequence<Handle<Kind>>, above highest: UInt32) {
        self.capacity = capacity
        let used = used.filter { $0.index < capacity }
        let top = used.map(\.generation).max() ?? 0
        first = max(highest, top) &+ 1
        self.highest = first
        let count = used.map { Int($0.index) + 1 }.max() ?? 0
        generations = [UInt32](repeating: first, count: count)
        var isFree = [Bool](repeating: true, count: count)
        for handle in used {
            generations[Int(handle.index)] = handle.generation
            isFree[Int(handle.index)] = false
        }
        free = isFree.indices.filter { isFree[$0] }.map { UInt32($0) }
    }

    package var used: Int { generations.count - free.count }
    package var available: Int { capacity - used }

    /// Returns an unused handle, or `nil` if all are taken.
    package mutating func allocate() -> Handle<Kind>? {
        if let index = free.popLast() {
            return Handle(index: index, generation: generations[Int(index)])
        }
        guard generations.count < capacity else { return nil }
        generations.append(first)
        return Handle(index: UInt32(generations.count - 1), generation: first)
    }

    /// Releases a handle; a stale one is ignored.
    package mutating func release(_ handle: Handle<Kind>) {
        let index = Int(handle.index)
        guard index < generations.count, generations[index] == handle.generation else { return }
        generations[index] &+= 1
        highest = max(highest, generations[index])
        free.append(handle.index)
    }
}
