import RTP

/// Layers of one encoding according to its dependency descriptors (RTP Payload Format for AV1,
/// appendix A).
///
/// It holds the last structure and the recipients of the recent frames. Decode targets decide which
/// layer points need a frame. Frame differences and switch indications decide where a subscriber
/// may switch up.
struct DependencyLayout: ~Copyable {
    struct Frame: BitwiseCopyable {
        var number: UInt32 = .max
        var points = LayerPoints.none
    }

    /// Recent frames whose recipients are remembered.
    private static let frameCapacity = 128

    private var templates = UncountedArray<DependencyTemplate>(capacity: 8)
    /// Highest spatial and temporal layer of each decode target.
    private var targets = UncountedArray<LayerPoint>(capacity: 8)
    private var firstTemplateID: UInt8 = 0
    private var activeTargets: UInt32 = .max
    /// Whether every frame that a lower layer needs is also needed by the higher ones.
    private var isNested = true
    /// Layer points that follow each decode target, one entry per target.
    private var followers = UncountedArray<LayerPoints>(capacity: 8)
    private var frames = Ring<Frame>(capacity: frameCapacity, filledWith: Frame())
    /// Number of the frame that carried the structure.
    ///
    /// It is sent to all, because later frames cannot be parsed without the structure.
    private var structureFrame: UInt16?

    init() {}

    /// Reads one packet's dependency descriptor and records which layer points need the packet.
    ///
    /// Returns the resolutions of a new structure if it has some. A packet whose descriptor cannot
    /// be read is sent to all.
    mutating func read(_ element: Span<UInt8>, into info: inout PacketInfo) -> [PictureSize]? {
        guard let descriptor = DependencyDescriptor(element) else { return nil }
        var sizes: [PictureSize]?
        let needs: FrameDependencySummary
        if descriptor.attachesStructure {
            var structure: DependencyStructure?
            guard let frame = FrameDependencies(element, structure: &structure), let structure
            else { return nil }
            needs = FrameDependencySummary(frame)
            adopt(structure, active: frame.activeDecodeTargets)
            structureFrame = descriptor.frameNumber
            sizes = structure.resolutions
        } else {
            guard
                let read = FrameDependencySummary(
                    element,
                    templates: templates.span,
                    firstID: firstTemplateID,
                    decodeTargetCount: targets.count
                )
            else { return nil }
            needs = read
            if let active = needs.activeDecodeTargets, active != activeTargets {
                activeTargets = active
                assignFollowers()
            }
        }
        note(needs, descriptor, into: &info)
        return sizes
    }

    private mutating func adopt(_ structure: DependencyStructure, active: UInt32?) {
        templates.removeAll()
        for template in structure.templates { templates.append(DependencyTemplate(template)) }
        targets.removeAll()
        for target in 0..<structure.decodeTargetCount {
            let layers = structure.layers(ofDecodeTarget: target)
            targets.append(LayerPoint(spatial: layers.spatialID, temporal: layers.temporalID))
        }
        firstTemplateID = structure.templateIDOffset
        activeTargets = active ?? .max
        isNested = areTargetsNested()
        assignFollowers()
    }

    private func areTargetsNested() -> Bool {
        // Templates that each decode target needs, one bit each: any packet may bring a structure,
        // so all pairs of 32 targets are not compared template by template.
        var needed = [32 of UInt64](repeating: 0)
        for index in 0..<min(templates.count, UInt64.bitWidth) {
            let indications = templates[index].indications
            for target in 0..<min(targets.count, needed.count)
            where indications >> UInt64(2 * target) & 3 != 0 {
                needed[target] |= 1 << UInt64(index)
            }
        }
        for lower in 0..<min(targets.count, needed.count) {
            for higher in 0..<min(targets.count, needed.count)
            where targets[lower].spatial <= targets[higher].spatial
                && targets[lower].temporal <= targets[higher].temporal
            {
                if needed[lower] & ~needed[higher] != 0 { return false }
            }
        }
        return true
    }

    /// Assigns each layer point to the highest active decode target within its layers: first by
    /// spatial, then by temporal layer.
    private mutating func assignFollowers() {
        followers.removeAll()
        for _ in 0..<targets.count { followers.append(.none) }
        for index in 0..<LayerPoint.count {
            let point = LayerPoint(index: index)
            var best: Int?
            for target in 0..<targets.count where activeTargets >> UInt32(target) & 1 != 0 {
                let layers = targets[target]
                guard layers.spatial <= point.spatial, layers.temporal <= point.temporal,
                    best.map({ layers.rawValue > targets[$0].rawValue }) ?? true
                else { continue }
                best = target
            }
            if let best { followers[best].formUnion(LayerPoints(point)) }
        }
    }

    private mutating func note(
        _ needs: FrameDependencySummary,
        _ descriptor: DependencyDescriptor,
        into info: inout PacketInfo
    ) {
        var points = LayerPoints.none
        var switches = LayerPoints.none
        var ends = LayerPoints.none
        for target in 0..<targets.count {
            let indication = needs.indication(ofDecodeTarget: target)
            guard indication != .notPresent else { continue }
            points.formUnion(followers[target])
            if indication == .switchable { switches.formUnion(followers[target]) }
            if targets[target].spatial == needs.spatialID { ends.formUnion(followers[target]) }
        }
        let hasStructure = structureFrame == descriptor.frameNumber
        if hasStructure { points = .all }
        info.points = points
        info.layer = LayerPoint(spatial: needs.spatialID, temporal: needs.temporalID).rawValue
        if isNested {
            info.flags.insert(.nestsLayers)
        } else {
            info.flags.remove(.nestsLayers)
        }
        info.marks = info.flags.contains(.marker) ? points : .none
        if descriptor.endOfFrame { info.marks.formUnion(ends.intersection(points)) }
        if descriptor.startOfFrame {
            info.switches = switches
            info.bases = bases(of: needs, at: descriptor.frameNumber)
        }
        frames[Int(descriptor.frameNumber)] = Frame(
            number: UInt32(descriptor.frameNumber),
            points: points
        )
    }

    /// Returns the layer points that have been sent all the frames that a frame depends on.
    private func bases(of needs: FrameDependencySummary, at number: UInt16) -> LayerPoints {
        guard !needs.hasDistantDependency else { return .none }
        var bases = LayerPoints.all
        var differences = needs.differences
        while differences != 0 {
            let needed = number &- UInt16(differences.trailingZeroBitCount + 1)
            let frame = frames[Int(needed)]
            guard frame.number == UInt32(needed) else { return .none }
            bases.formIntersection(frame.points)
            differences &= differences &- 1
        }
        return bases
    }
}
