internal import RTP

/// What descriptors say of a packet's layers.
extension PacketInfo {
    /// VP8 has temporal layers only; Y says that a frame needs the lowest one alone
    /// (RFC 7741 §4.2).
    mutating func readLayers(_ descriptor: VP8Descriptor) {
        if pictureIDOffset > 0 { flags.insert(.countsPictures) }
        guard let temporal = descriptor.temporalID else { return }
        layer = LayerPoint(spatial: 0, temporal: temporal).rawValue
        points = LayerPoints(from: 0, temporal)
        marks = flags.contains(.marker) ? points : .none
        flags.insert(.nestsLayers)
        guard descriptor.layerSync, temporal > 0, descriptor.startsFrame else { return }
        // Layers between may need what came before: up by one at a time.
        switches = LayerPoints(temporal: temporal)
        bases = LayerPoints(from: 0, temporal - 1)
    }

    /// VP9's layers all nest: who follows one gets those below (RFC 9628 §4.2).
    mutating func readLayers(_ descriptor: VP9Descriptor) {
        guard descriptor.hasLayerIndices else { return }
        let spatial = descriptor.spatialID
        let temporal = min(descriptor.temporalID, 3)
        layer = LayerPoint(spatial: spatial, temporal: temporal).rawValue
        points = LayerPoints(from: spatial, temporal)
        flags.insert(.nestsLayers)
        marks = flags.contains(.marker) ? points : .none
        if descriptor.endsFrame {
            marks.formUnion(LayerPoints(spatial: spatial).intersection(points))
        }
        guard descriptor.switchingUpPoint, descriptor.startsFrame else { return }
        // U at the lowest layer frees all above it. At a higher one encoders say with it that
        // the frame itself needs only lower layers.
        switches = temporal == 0 ? .all : LayerPoints(temporal: temporal)
        bases = LayerPoints(from: 0, temporal > 0 ? temporal - 1 : 0)
    }
}

extension Core {
    /// Notes what a dependency descriptor says of a packet's layers, whatever its codec.
    mutating func readDependencies(_ info: inout PacketInfo, place: Int32, encoding: Int) -> Bool {
        let start = Int(info.dependencyDescriptor.offset)
        let end = start + Int(info.dependencyDescriptor.length)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        if encodings[encoding].dependencies == nil {
            encodings[encoding].dependencies = DependencyLayout()
        }
        let sizes = encodings[encoding].dependencies?
            .read(packet.extracting(start..<end), into: &info)
        guard let sizes, !sizes.isEmpty else { return false }
        var isChanged = false
        for (spatial, size) in sizes.enumerated().prefix(8) {
            let measured = LayerMeter.Size(size)
            if encodings[encoding].layers.set(measured, of: UInt8(spatial)) { isChanged = true }
        }
        return isChanged
    }
}

extension LayerMeter.Size {
    init(_ size: Resolution) {
        width = UInt16(clamping: size.width)
        height = UInt16(clamping: size.height)
    }
}
