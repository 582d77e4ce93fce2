import RTP
import SFU

/// Assembler of AV1 temporal units from RTP packets (RTP Payload Format for AV1 §4).
///
/// The output follows Matroska: each OBU has its size field, and temporal delimiters are omitted.
struct AV1Assembler {
    /// Last sequence header OBU with its size field; empty before there is one.
    private(set) var sequenceHeader: [UInt8] = []
    private(set) var resolution: PictureSize?

    /// Largest accepted sequence header in bytes; some dozens are usual.
    private static let sequenceBytes = 4_096

    /// Assembles the packets of one temporal unit; returns `nil` if an OBU is incomplete or
    /// invalid.
    mutating func assemble(_ parts: [TapPacket]) -> [UInt8]? {
        var units: [[UInt8]] = []
        var fragment: [UInt8]?
        for part in parts {
            guard Self.take(part.payload, into: &units, &fragment) else { return nil }
        }
        guard fragment == nil else { return nil }
        var picture: [UInt8] = []
        for unit in units {
            guard let sized = sized(unit) else { return nil }
            picture += sized
        }
        return picture
    }

    private static func take(
        _ payload: [UInt8],
        into units: inout [[UInt8]],
        _ fragment: inout [UInt8]?
    ) -> Bool {
        guard let header = AV1AggregationHeader(payload.span),
            header.continuesUnit == (fragment != nil)
        else { return false }
        var position = 1
        var count = 0
        while position < payload.count {
            count += 1
            var end = payload.count
            if header.elementCount == 0 || count < header.elementCount {
                guard let size = leb128(payload, &position), size <= payload.count - position
                else { return false }
                end = position + size
            }
            let element = payload[position..<end]
            position = end
            let isLast = position == payload.count
            // In place: a copy for each packet would make the cost of a frame quadratic.
            if fragment == nil {
                fragment = Array(element)
            } else {
                fragment?.append(contentsOf: element)
            }
            guard !(isLast && header.isContinued) else { continue }
            if let unit = fragment, !unit.isEmpty { units.append(unit) }
            fragment = nil
        }
        return header.elementCount == 0 || count == header.elementCount
    }

    /// Returns the OBU with its size field; empty for an OBU that is omitted from files, `nil` for
    /// an invalid one.
    private mutating func sized(_ unit: [UInt8]) -> [UInt8]? {
        let hasExtension = unit[0] & 0x04 != 0
        var start = hasExtension ? 2 : 1
        guard start <= unit.count else { return nil }
        var end = unit.count
        if unit[0] & 0x02 != 0 {
            guard let size = Self.leb128(unit, &start), size <= unit.count - start else {
                return nil
            }
            end = start + size
        }
        let type = unit[0] >> 3 & 0x0f
        // Temporal delimiters, tile lists and padding.
        guard type != 2, type != 8, type != 15 else { return [] }
        var sized = [unit[0] | 0x02]
        if hasExtension { sized.append(unit[1]) }
        Self.append(leb128: end - start, to: &sized)
        sized += unit[start..<end]
        if type == 1 {
            // libavformat 59 loops forever on a header that ends in its timing information, so a
            // header is passed on only if its resolution could be parsed.
            guard sized.count <= Self.sequenceBytes,
                let size = AV1SequenceHeader.resolution(Array(unit[start..<end]).span)
            else { return nil }
            sequenceHeader = sized
            resolution = size
        }
        return sized
    }

    /// Reads a leb128 number (AV1 specification §4.10.5) of at most eight bytes.
    private static func leb128(_ bytes: [UInt8], _ position: inout Int) -> Int? {
        var value = 0
        for shift in stride(from: 0, to: 56, by: 7) {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            value |= Int(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }

    private static func append(leb128 value: Int, to bytes: inout [UInt8]) {
        var rest = value
        while rest > 0x7f {
            bytes.append(UInt8(rest & 0x7f) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
