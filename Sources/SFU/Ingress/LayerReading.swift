import RTP

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

extension Core {
    /// Notes what a sender says that its layers are to take, by the `video-layers-allocation00`
    /// header extension.
    ///
    /// It is believed only where nothing has been measured yet.
    mutating func noteAllocation(_ info: PacketInfo, _ place: Int32, encoding: Int) {
        let start = Int(info.layersAllocation.offset)
        let end = start + Int(info.layersAllocation.length)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        guard let allocation = VideoLayersAllocation(packet.extracting(start..<end)) else { return }
        encodings[encoding].layers.forgetStated()
        var below = 0
        for index in 0..<allocation.layerCount {
            let layer = allocation[index]
            // What other encodings take their own packets say.
            guard layer.stream == allocation.streamIndex else { continue }
            var bitrate = 0
            for temporal in 0..<layer.temporalLayerCount {
                bitrate = below &+ Int(layer.targetKilobits(temporalLayer: temporal)) &* 1_000
                encodings[encoding].layers.state(
                    bitrate,
                    temporal == layer.temporalLayerCount - 1 ? layer.frameRate : 0,
                    of: LayerPoint(spatial: layer.spatialID, temporal: UInt8(temporal))
                )
            }
            // Who follows a higher layer gets those that it builds on too.
            if info.flags.contains(.nestsLayers) { below = bitrate }
            guard let resolution = layer.resolution else { continue }
            noteStated(LayerMeter.Size(resolution), of: layer.spatialID, encoding: encoding)
        }
    }

    /// Keyframes are believed rather; but those that are encrypted end to end tell nothing.
    private mutating func noteStated(
        _ size: LayerMeter.Size,
        of spatial: UInt8,
        encoding: Int
    ) {
        guard encodings[encoding].layers.size(of: spatial) == LayerMeter.Size() else { return }
        _ = encodings[encoding].layers.set(size, of: spatial)
        encodings[encoding].width = max(encodings[encoding].width, Int(size.width))
        encodings[encoding].height = max(encodings[encoding].height, Int(size.height))
    }
}

extension LayerMeter.Size {
    init(_ size: PictureSize) {
        width = UInt16(clamping: size.width)
        height = UInt16(clamping: size.height)
    }
}
