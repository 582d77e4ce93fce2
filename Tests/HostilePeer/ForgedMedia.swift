/// An unencrypted media packet whose header, extensions and payload descriptor are forged.
package struct ForgedMedia: Sendable {
    /// Ids of negotiated header extensions; 0: not negotiated.
    package struct Extensions: Sendable {
        package var audioLevel: UInt8 = 0
        package var sendTime: UInt8 = 0
        package var transportSequence: UInt8 = 0
        package var captureTime: UInt8 = 0
        package var descriptor: UInt8 = 0
        package var layersAllocation: UInt8 = 0
        package var mid: UInt8 = 0

        package init() {}
    }

    package static let fields: [WireField] = [
        .sequence, .timestamp, .source, .payloadType, .padding, .pictureID, .tl0PictureIndex,
        .temporalLayer, .audioLevel, .descriptorFlags, .descriptorFrame, .descriptorStructure,
        .layersAllocation, .captureTime, .sendTime, .transportSequence,
    ]

    package var extensions = Extensions()
    package var mid = ""
    package var isVideo = false
    package var isKeyframe = false

    package init() {}

    /// Encodes the packet; `mark` ends its payload.
    package func bytes(
        mark: [UInt8],
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        let padding = Int(values.next(.padding, using: &random) & 0xff)
        let type = UInt8(values.next(.payloadType, using: &random) & 0x7f)
        var bytes: [UInt8] = [padding > 0 ? 0xb0 : 0x90, type | (isVideo ? 0x80 : 0)]
        bytes += Wire.bytes(values.next(.sequence, using: &random), 2)
        bytes += Wire.bytes(values.next(.timestamp, using: &random), 4)
        bytes += Wire.bytes(values.next(.source, using: &random), 4)
        let elements = self.elements(&values, using: &random)
        bytes += [0xbe, 0xde] + Wire.bytes(UInt64(elements.count / 4), 2) + elements
        bytes += isVideo ? descriptor(&values, using: &random) : [0x78]
        bytes += mark
        guard padding > 0 else { return bytes }
        return bytes + [UInt8](repeating: 0, count: padding - 1)
            + [UInt8(truncatingIfNeeded: padding)]
    }

    private func elements(
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ id: UInt8, _ value: [UInt8]) {
            guard id > 0, !value.isEmpty else { return }
            bytes.append(id << 4 | UInt8(value.count - 1))
            bytes += value
        }
        add(extensions.mid, Array(mid.utf8))
        if !isVideo {
            add(extensions.audioLevel, Wire.bytes(values.next(.audioLevel, using: &random), 1))
        }
        add(extensions.sendTime, Wire.bytes(values.next(.sendTime, using: &random), 3))
        let number = values.next(.transportSequence, using: &random)
        add(extensions.transportSequence, Wire.bytes(number, 2))
        add(extensions.captureTime, Wire.bytes(values.next(.captureTime, using: &random), 8))
        if isVideo {
            let flags = Wire.bytes(values.next(.descriptorFlags, using: &random), 1)
            let frame = Wire.bytes(values.next(.descriptorFrame, using: &random), 2)
            let structure = values.next(.descriptorStructure, using: &random)
            let more = structure == 0 ? [] : [0x80] + Wire.bytes(structure, 3) + [0x55, 0xaa]
            add(extensions.descriptor, flags + frame + more)
            let layers = Wire.bytes(values.next(.layersAllocation, using: &random), 2)
            add(extensions.layersAllocation, layers + [0x40, 0x80, 0x01])
        }
        while bytes.count % 4 != 0 { bytes.append(0) }
        return bytes
    }

    /// Encodes a VP8 descriptor with all its fields (RFC 7741 §4.2), and the first bytes of a
    /// frame.
    private func descriptor(
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        let picture = values.next(.pictureID, using: &random)
        let index = values.next(.tl0PictureIndex, using: &random)
        let layer = values.next(.temporalLayer, using: &random) & 3
        let start: [UInt8] = [0x90, 0xe0]
        let descriptor =
            start + Wire.bytes(0x8000 | picture, 2) + Wire.bytes(index, 1)
            + Wire.bytes(layer << 6, 1)
        guard isKeyframe else { return descriptor + [0x11, 0, 0] }
        return descriptor + [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0]
    }
}
