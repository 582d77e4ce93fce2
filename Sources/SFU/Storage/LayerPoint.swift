import RTP
import WorkerInterface

/// Layer up to which an encoding is forwarded: a spatial and a temporal one.
struct LayerPoint: Hashable, BitwiseCopyable {
    let rawValue: UInt8

    /// Largest number of distinct points: eight spatial layers of four temporal ones.
    static let count = 32
    /// Point that includes every layer.
    static let top = Self(spatial: 7, temporal: 3)

    init(spatial: UInt8, temporal: UInt8) {
        rawValue = min(spatial, 7) << 2 | min(temporal, 3)
    }

    init(index: Int) { rawValue = UInt8(truncatingIfNeeded: index & 31) }

    var spatial: UInt8 { rawValue >> 2 }
    var temporal: UInt8 { rawValue & 3 }
    var index: Int { Int(rawValue) }
}

/// Set of layer points, one bit for each, that a packet is forwarded to.
struct LayerPoints: Hashable, BitwiseCopyable {
    var rawValue: UInt32

    static let all = Self(rawValue: .max)
    static let none = Self(rawValue: 0)

    init(rawValue: UInt32) { self.rawValue = rawValue }

    init(_ point: LayerPoint) { rawValue = 1 << UInt32(point.rawValue) }

    /// Creates the set of all points that include a layer, if higher ones build on lower ones.
    init(from spatial: UInt8, _ temporal: UInt8) {
        let row = UInt32(0xf) << UInt32(min(temporal, 3)) & 0xf
        rawValue = (row &* 0x1111_1111) << UInt32(4 * min(spatial, 7))
    }

    /// Creates the set of the points of one temporal layer.
    init(temporal: UInt8) { rawValue = 0x1111_1111 << UInt32(min(temporal, 3)) }

    /// Creates the set of the points of one spatial layer.
    init(spatial: UInt8) { rawValue = 0xf << UInt32(4 * min(spatial, 7)) }

    func contains(_ point: LayerPoint) -> Bool {
        rawValue >> UInt32(point.rawValue & 31) & 1 != 0
    }

    func union(_ other: Self) -> Self { Self(rawValue: rawValue | other.rawValue) }
    func intersection(_ other: Self) -> Self { Self(rawValue: rawValue & other.rawValue) }
    mutating func formUnion(_ other: Self) { rawValue |= other.rawValue }
    mutating func formIntersection(_ other: Self) { rawValue &= other.rawValue }
}

/// Resolution of one spatial layer, in pixels; 0 while unknown.
struct LayerSize: Equatable, BitwiseCopyable {
    var width: UInt16 = 0
    var height: UInt16 = 0
}
