package import WorkerInterface

/// Place of an object in the slabs of its kind.
///
/// It is typed, so that the index of a slot finds no transport. Unlike a handle it has no
/// generation: whoever keeps one beyond the object's life keeps a handle instead.
package struct Index<Kind>: Hashable, Comparable, BitwiseCopyable {
    let rawValue: Int32

    init(_ offset: Int) {
        precondition(offset >= 0, "an index is not negative")
        rawValue = Int32(offset)
    }

    init(rawValue: Int32) { self.rawValue = rawValue }

    /// Position in an array that has a place for each object of the kind.
    var offset: Int { Int(rawValue) }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// An index or none in the four bytes of an index, for records that the packet path touches.
struct OptionalIndex<Kind>: Hashable, BitwiseCopyable {
    private var rawValue: Int32

    init(_ value: Index<Kind>? = nil) { rawValue = value?.rawValue ?? -1 }

    var value: Index<Kind>? {
        get { rawValue >= 0 ? Index(rawValue: rawValue) : nil }
        set { rawValue = newValue?.rawValue ?? -1 }
    }

    static var none: Self { Self(nil) }
}

extension Handle {
    /// Place of the object.
    var place: Index<Kind> { Index(Int(index)) }
}

extension HandleKind {
    package enum Encoding {}
    package enum Packet {}
}

typealias TransportIndex = Index<HandleKind.Transport>
typealias PublicationIndex = Index<HandleKind.Publication>
typealias EncodingIndex = Index<HandleKind.Encoding>
typealias SlotIndex = Index<HandleKind.Slot>
/// Place of a packet in the pool.
typealias PacketPlace = Index<HandleKind.Packet>
