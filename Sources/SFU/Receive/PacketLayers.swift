import RTP

/// Layers of a packet, read from its payload descriptor.
extension PacketInfo {
    /// Reads VP8's layers, which are temporal only.
    ///
    /// The Y bit marks a frame that depends on the lowest layer alone (RFC 7741 §4.2).
    mutating func readLayers(_ descriptor: VP8Descriptor) {
        if pictureIDOffset > 0 { flags.insert(.countsPictures) }
        guard let temporal = descriptor.temporalID else { return }
        layer = LayerPoint(spatial: 0, temporal: temporal).rawValue
        points = LayerPoints(from: 0, temporal)
        marks = flags.contains(.marker) ? points : .none
        flags.insert(.nestsLayers)
        guard descriptor.layerSync, temporal > 0, descriptor.startsFrame else { return }
        // Frames between may depend on earlier ones of their layer: switch up one layer at a time.
        switches = LayerPoints(temporal: temporal)
        bases = LayerPoints(from: 0, temporal - 1)
    }

    /// Reads VP9's layers, which are all nested: a subscriber of a layer is sent those below it
    /// (RFC 9628 §4.2).
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
        // At the lowest temporal layer the U bit is a switching point for all layers. At a higher
        // one, encoders set it when the frame itself depends only on lower layers.
        switches = temporal == 0 ? .all : LayerPoints(temporal: temporal)
        bases = LayerPoints(from: 0, temporal > 0 ? temporal - 1 : 0)
    }
}

extension Receiver {
    /// Reads the dependency descriptor of a packet, whatever its codec.
    ///
    /// Returns whether a resolution has changed.
    mutating func readDependencies(
        _ info: inout PacketInfo,
        place: PacketPlace,
        encoding: EncodingIndex
    ) -> Bool {
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
            let measured = LayerSize(size)
            if encodings[encoding].layers.set(measured, of: UInt8(spatial)) { isChanged = true }
        }
        return isChanged
    }
}

extension Receiver {
    /// Reads the layer bitrates that the sender announces in the `video-layers-allocation00` header
    /// extension.
    ///
    /// They are used only until the layers have been measured.
    mutating func noteAllocation(_ info: PacketInfo, _ place: PacketPlace, encoding: EncodingIndex)
    {
        let start = Int(info.layersAllocation.offset)
        let end = start + Int(info.layersAllocation.length)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        guard let allocation = VideoLayersAllocation(packet.extracting(start..<end)) else { return }
        encodings[encoding].layers.clearAnnounced()
        var below = 0
        for index in 0..<allocation.layerCount {
            let layer = allocation[index]
            // Other encodings are announced in their own packets.
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
            // With nested layers, a subscriber of a higher layer is sent those below it too.
            if info.flags.contains(.nestsLayers) { below = bitrate }
            guard let resolution = layer.resolution else { continue }
            noteAnnounced(LayerSize(resolution), of: layer.spatialID, encoding: encoding)
        }
    }

    /// Stores an announced resolution, unless one is known already.
    ///
    /// Resolutions in keyframes take precedence, but end-to-end encrypted keyframes reveal none.
    private mutating func noteAnnounced(
        _ size: LayerSize,
        of spatial: UInt8,
        encoding: EncodingIndex
    ) {
        guard encodings[encoding].layers.size(of: spatial) == LayerSize() else { return }
        _ = encodings[encoding].layers.set(size, of: spatial)
        encodings[encoding].width = max(encodings[encoding].width, Int(size.width))
        encodings[encoding].height = max(encodings[encoding].height, Int(size.height))
    }
}

extension LayerSize {
    init(_ size: PictureSize) {
        width = UInt16(clamping: size.width)
        height = UInt16(clamping: size.height)
    }
}
