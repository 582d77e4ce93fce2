import RTP
import SFU

/// Assembler of H.264 pictures from RTP packets (RFC 6184).
///
/// The output follows Matroska: a length precedes each NAL unit, and parameter sets are kept apart.
struct H264Assembler {
    private var sequenceSets: [[UInt8]] = []
    private var pictureSets: [[UInt8]] = []
    /// Decoder configuration record of the last parameter sets (ISO/IEC 14496-15 §5.3.3.1); empty
    /// before there are any.
    private(set) var configuration: [UInt8] = []

    /// Largest number of parameter sets of one kind; real streams have fewer.
    private static let setLimit = 16
    /// Accepted size of a parameter set in bytes.
    ///
    /// Some dozens are usual; the record has two bytes for the size.
    private static let setBytes = 4...4_096

    /// Assembles the packets of one picture; returns `nil` if a NAL unit is incomplete or invalid.
    mutating func assemble(_ parts: [TapPacket]) -> [UInt8]? {
        var units: [[UInt8]] = []
        var fragment: [UInt8]?
        for part in parts {
            guard Self.take(part.payload, into: &units, &fragment) else { return nil }
        }
        guard fragment == nil else { return nil }
        keepParameters(of: units)
        var picture: [UInt8] = []
        for unit in units where Self.belongsIntoPicture(unit[0] & 0x1f) {
            for shift in stride(from: 24, through: 0, by: -8) {
                picture.append(UInt8(truncatingIfNeeded: unit.count >> shift))
            }
            picture += unit
        }
        return picture
    }

    private static func take(
        _ payload: [UInt8],
        into units: inout [[UInt8]],
        _ fragment: inout [UInt8]?
    ) -> Bool {
        guard let first = payload.first else { return false }
        switch first & 0x1f {
        case 1...23:
            guard fragment == nil else { return false }
            units.append(payload)
        case 24:  // STAP-A
            guard fragment == nil else { return false }
            var position = 1
            while position + 2 < payload.count {
                let size = Int(payload[position]) << 8 | Int(payload[position + 1])
                let end = position + 2 + size
                guard size > 0, end <= payload.count else { return false }
                units.append(Array(payload[position + 2..<end]))
                position = end
            }
        case 28:  // FU-A
            guard payload.count > 2 else { return false }
            if payload[1] & 0x80 != 0 {
                guard fragment == nil else { return false }
                fragment = [first & 0xe0 | payload[1] & 0x1f]
            }
            guard fragment != nil else { return false }
            fragment?.append(contentsOf: payload[2...])
            if payload[1] & 0x40 != 0, let unit = fragment {
                units.append(unit)
                fragment = nil
            }
        default: return false
        }
        return true
    }

    /// Whether a NAL unit type belongs to the picture.
    ///
    /// Parameter sets are in the file's header; delimiters and filler data are omitted.
    private static func belongsIntoPicture(_ type: UInt8) -> Bool {
        switch type {
        case 7, 8, 9, 12: false
        default: true
        }
    }

    private mutating func keepParameters(of units: [[UInt8]]) {
        let sequence = units.filter { $0[0] & 0x1f == 7 && Self.setBytes.contains($0.count) }
        let picture = units.filter { $0[0] & 0x1f == 8 && $0.count <= Self.setBytes.upperBound }
        if !sequence.isEmpty { sequenceSets = Array(sequence.prefix(Self.setLimit)) }
        if !picture.isEmpty { pictureSets = Array(picture.prefix(Self.setLimit)) }
        guard !sequence.isEmpty || !picture.isEmpty, let first = sequenceSets.first,
            !pictureSets.isEmpty
        else { return }
        configuration = [1, first[1], first[2], first[3], 0xff]
        configuration.append(0xe0 | UInt8(sequenceSets.count))
        for set in sequenceSets { append(set) }
        configuration.append(UInt8(pictureSets.count))
        for set in pictureSets { append(set) }
    }

    private mutating func append(_ set: [UInt8]) {
        configuration.append(UInt8(truncatingIfNeeded: set.count >> 8))
        configuration.append(UInt8(truncatingIfNeeded: set.count))
        configuration += set
    }
}
