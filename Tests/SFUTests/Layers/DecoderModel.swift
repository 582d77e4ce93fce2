import RTP
import WorkerInterface

@testable import SFU

/// Model of a decoder behind one slot.
///
/// It takes packets by their sequence numbers and reports faults, knowing nothing of how layers
/// were selected.
struct DecoderModel {
    /// A received, decrypted packet.
    private struct Arrival {
        var sequence: UInt16
        var timestamp: UInt32
        var marker: Bool
        /// Origin by the payload; `nil` for a packet without one.
        var origin: Origin?
        var pictureID: UInt16?
        var tl0: UInt8?
        var needs: [UInt16] = []
    }

    private struct Frame {
        var origin: Origin
        var timestamp: UInt32
        var pictureID: UInt16?
        var tl0: UInt8?
        var needs: [UInt16]
        var positions: Set<UInt8> = []
        var isMarked = false
        /// Whether sequence numbers right before it were missing or empty.
        var followsHole = false
    }

    let coding: Coding
    /// Input packets that were never received, by encoding and number.
    var lost: Set<UInt64> = []
    private var pending: [Int: Arrival] = [:]
    private var highest: Int?
    private var next: Int?
    private var frame: Frame?
    private var hasHole = false
    private var previous: Arrival?
    private var previousFrame: Frame?
    private var lastTL0: UInt8?
    /// Received frames, and whether they and all that they depend on were complete.
    private var decoded: [UInt32: Bool] = [:]
    private var structure: DependencyStructure?
    /// Frame numbers of the received dependency descriptors.
    private var numbers: Set<UInt16> = []
    private var lastNumbers: [UInt16] = []

    /// Whether the stream may begin with earlier frames, one tick to a millisecond apart.
    var mayBeCondensed = false

    private(set) var violations: [String] = []
    private(set) var packets = 0
    /// Number of received packets, retransmissions aside, whether inspected or not.
    private(set) var arrivals = 0
    private(set) var frames = 0
    private(set) var fillers = 0
    private(set) var holes = 0
    private(set) var broken = 0
    private(set) var highestLayer = (spatial: UInt8(0), temporal: UInt8(0))
    /// Number of packets after which an older one no longer counts as missing.
    private static let window = 300

    init(_ coding: Coding) { self.coding = coding }

    /// Sequence numbers that are still missing.
    var missing: [UInt16] {
        guard let next, let highest else { return [] }
        return (next..<highest).filter { pending[$0] == nil }
            .map { UInt16(truncatingIfNeeded: $0) }
    }

    /// Takes a packet, or the original within a retransmission (RFC 4588 §4).
    mutating func receive(_ bytes: [UInt8], isRetransmission: Bool) {
        var bytes = bytes
        if isRetransmission {
            let header = 16 + 4 * Int(bytes.u16(14))
            guard bytes.count >= header + 2 else { return fail("unreadable RTX") }
            bytes.replaceSubrange(2..<4, with: bytes[header..<header + 2])
            bytes.removeSubrange(header..<header + 2)
        }
        guard let arrival = read(bytes) else { return fail("unreadable packet") }
        if !isRetransmission { arrivals += 1 }
        if isRetransmission, isKnown(arrival.sequence) { return }
        let number: Int
        if let highest {
            let step = Int(
                Int16(bitPattern: arrival.sequence &- UInt16(truncatingIfNeeded: highest))
            )
            number = highest + step
        } else {
            number = Int(arrival.sequence)
        }
        if let next, number < next { return fail("number \(number) came twice or too late") }
        if pending.updateValue(arrival, forKey: number) != nil {
            fail("number \(number) came twice")
        }
        highest = max(highest ?? number, number)
        if next == nil { next = number }
        drain(upTo: (highest ?? 0) - Self.window)
    }

    private func isKnown(_ sequence: UInt16) -> Bool {
        guard let highest, let next else { return false }
        let step = Int(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest)))
        return highest + step < next || pending[highest + step] != nil
    }

    /// Processes the remaining packets.
    mutating func finish() {
        drain(upTo: (highest ?? -1) + 1)
        if holes > lost.count { fail("\(holes) holes for \(lost.count) lost packets") }
    }

    private mutating func drain(upTo end: Int) {
        while let number = next, number < end {
            if let arrival = pending.removeValue(forKey: number) {
                take(arrival)
            } else {
                hasHole = true
                holes += 1
                if lost.isEmpty { fail("number \(number) is missing") }
            }
            next = number + 1
        }
    }

    private mutating func take(_ arrival: Arrival) {
        packets += 1
        guard let origin = arrival.origin else {
            fillers += 1
            hasHole = true
            return
        }
        checkTime(arrival, origin)
        if let open = frame, open.origin.frame != origin.frame { close(open, before: arrival) }
        if frame == nil {
            frame = Frame(
                origin: origin,
                timestamp: arrival.timestamp,
                pictureID: arrival.pictureID,
                tl0: arrival.tl0,
                needs: arrival.needs,
                followsHole: hasHole
            )
        }
        if frame?.pictureID != arrival.pictureID { fail("picture id changes within a frame") }
        frame?.positions.insert(origin.position)
        frame?.isMarked = arrival.marker
        hasHole = false
        previous = arrival
    }

    private mutating func checkTime(_ arrival: Arrival, _ origin: Origin) {
        guard let previous, let before = previous.origin else { return }
        let step = Int32(bitPattern: arrival.timestamp &- previous.timestamp)
        if before.encoding == origin.encoding {
            if step != Int32(bitPattern: origin.timestamp &- before.timestamp) {
                if mayBeCondensed, (1...90).contains(step), origin.frame != before.frame { return }
                fail("timestamp goes another way than the encoder's")
            }
            if step != 0 { mayBeCondensed = false }
        } else if step <= 0 || step > 10 * 90_000 {
            fail("timestamp steps by \(step) over a switch")
        }
        // A switch that begins with a keyframe leaves the previous picture incomplete, which is
        // fine.
        if step != 0, !previous.marker, before.encoding == origin.encoding, !hasHole,
            !origin.isKeyframe, lost.isEmpty
        {
            fail("a picture ends without its marker")
        }
        if step == 0, previous.marker { fail("a picture goes on after its marker") }
    }

    private mutating func close(_ closed: Frame, before arrival: Arrival?) {
        frame = nil
        frames += 1
        highestLayer.spatial = max(highestLayer.spatial, closed.origin.spatial)
        highestLayer.temporal = max(highestLayer.temporal, closed.origin.temporal)
        let isWhole = closed.positions.count == Int(closed.origin.count)
        let isCutOff =
            arrival.map {
                $0.origin?.encoding != closed.origin.encoding || $0.origin?.isKeyframe == true
            } ?? true
        // In S modes the first picture's lowest layer is forwarded for its descriptor alone.
        let isForDescriptor =
            coding == .av1Independent && closed.origin.isKeyframe && closed.origin.spatial == 0
        if !isWhole, !isCutOff, !isForDescriptor, !isExplained(closed) {
            fail("frame \(closed.origin.frame) has \(closed.positions) of \(closed.origin.count)")
        }
        checkPicture(closed)
        checkNeeds(closed, isWhole: isWhole)
        previousFrame = closed
    }

    /// Whether packets of the frame itself were never received by the core.
    private func isExplained(_ frame: Frame) -> Bool {
        let first = frame.origin.number &- UInt32(frame.origin.position)
        return (0..<UInt32(frame.origin.count)).contains { step in
            lost.contains(UInt64(frame.origin.encoding) << 32 | UInt64(first &+ step))
        }
    }

    private mutating func checkNeeds(_ frame: Frame, isWhole: Bool) {
        let name = frame.origin.frame
        var isGood = isWhole
        for need in frame.origin.needs where need != 0 {
            switch decoded[need] {
            case true?: break
            case false?: isGood = false
            case nil:
                isGood = false
                if lost.isEmpty { fail("frame \(name) needs \(need), which was not sent") }
            }
        }
        if let before = previousFrame, before.origin.encoding != frame.origin.encoding,
            !frame.origin.isKeyframe
        {
            fail("another encoding begins without a keyframe")
        }
        for need in frame.needs where lost.isEmpty && !numbers.contains(need) {
            fail("frame number \(need) is needed and was not sent")
        }
        if coding.codec == .av1, let number = frame.pictureID {
            if !numbers.insert(number).inserted { fail("frame number \(number) twice") }
            lastNumbers.append(number)
            // Frame numbers wrap.
            if lastNumbers.count > 4_000 {
                numbers.subtract(lastNumbers.prefix(2_000))
                lastNumbers.removeFirst(2_000)
            }
        }
        decoded[name] = isGood
        if !isGood { broken += 1 }
        if frame.origin.isKeyframe, decoded.count > 5_000 {
            decoded = decoded.filter { name &- $0.key < 2_000 }
        }
    }

    private mutating func checkPicture(_ frame: Frame) {
        guard coding.codec == .vp8 || coding.codec == .vp9 else { return }
        guard let id = frame.pictureID, let tl0 = frame.tl0 else {
            return fail("a picture without its id")
        }
        defer { if frame.origin.temporal == 0 || frame.followsHole { lastTL0 = tl0 } }
        guard let before = previousFrame, let last = before.pictureID, !frame.followsHole else {
            return
        }
        let step = (id &- last) & 0x7fff
        let isSamePicture = before.origin.timestamp == frame.origin.timestamp
        switch coding.codec {
        case .vp8: if step != 1 { fail("picture id steps by \(step)") }
        default:
            // Picture ids express references: omitted pictures leave a gap.
            let steps = (frame.origin.timestamp &- before.origin.timestamp) / 3_000
            let isRestart = frame.origin.isKeyframe && step == 1
            if UInt32(step) != steps, !isRestart {
                fail("picture id steps by \(step) in \(steps) pictures")
            }
        }
        guard let lastTL0, !isSamePicture else { return }
        let expected = frame.origin.temporal == 0 ? lastTL0 &+ 1 : lastTL0
        if tl0 != expected { fail("TL0PICIDX \(tl0), not \(expected)") }
    }

    private mutating func fail(_ what: String) {
        if violations.count < 20 { violations.append("\(coding) packet \(packets): \(what)") }
    }

    /// Reads frame number and differences with the stream's structure, as a receiver does.
    private mutating func read(descriptor: [UInt8], into arrival: inout Arrival) {
        guard let head = DependencyDescriptor(descriptor.span) else { return }
        arrival.pictureID = head.frameNumber
        guard let frame = FrameDependencies(descriptor.span, structure: &structure) else {
            return fail("a descriptor without its structure")
        }
        for index in 0..<frame.frameDifferences.count {
            arrival.needs.append(head.frameNumber &- frame.frameDifferences[index])
        }
    }

    private mutating func read(_ bytes: [UInt8]) -> Arrival? {
        guard let packet = try? Packet(bytes.span) else { return nil }
        let end = bytes.count - packet.paddingLength
        let header = packet.headerLength
        var arrival = Arrival(
            sequence: packet.sequenceNumber.rawValue,
            timestamp: packet.timestamp,
            marker: packet.marker
        )
        guard end > header else { return arrival }
        guard let origin = Origin(payload: bytes[header..<end]) else { return nil }
        arrival.origin = origin
        let payload = Array(bytes[header..<end])
        switch coding.codec {
        case .vp8:
            let descriptor = VP8Descriptor(payload.span)
            arrival.pictureID = descriptor?.pictureID
            arrival.tl0 = descriptor?.tl0PictureIndex
        case .vp9:
            let descriptor = VP9Descriptor(payload.span)
            arrival.pictureID = descriptor?.pictureID
            arrival.tl0 = descriptor?.tl0PictureIndex
        case .av1:
            var elements = packet.extensions
            while let element = elements.next() {
                guard element.id == 13 else { continue }
                read(
                    descriptor: Array(bytes[element.offset..<element.offset + element.length]),
                    into: &arrival
                )
            }
        case .h264, .opus, .red: break
        }
        return arrival
    }
}
