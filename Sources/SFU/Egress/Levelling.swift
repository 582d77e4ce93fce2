import RTP
import WorkerInterface

/// Packets of one encoding whose sizes are made equal, so that they leave in one call: UDP
/// segmentation offload takes equal sizes to one address, of which the last may be shorter.
private struct SizeRun: BitwiseCopyable {
    /// Padding that a packet gets at most, in bytes: one call less is worth so much.
    static let maximumPadding = 8

    /// The first packet and the last, as pool places; -1 while there is none.
    var first: Int32 = -1
    var last: Int32 = -1
    /// Payload lengths.
    var smallest = 0
    var largest = 0
    /// Bytes of header extensions, the same in all but the packet that ends the run.
    var elements = 0

    /// Takes a packet in, if the run stays one that can be levelled.
    mutating func append(_ place: Int32, size: Int, elements: Int) -> Bool {
        guard first >= 0 else {
            self = Self(
                first: place,
                last: place,
                smallest: size,
                largest: size,
                elements: elements
            )
            return true
        }
        let low = min(smallest, size)
        let high = max(largest, size)
        guard elements == self.elements, high - low <= Self.maximumPadding else { return false }
        (last, smallest, largest) = (place, low, high)
        return true
    }

    /// The payload length at which a packet that cannot be levelled is no longer than the others,
    /// so that it may end the run; `nil` where they would need too much padding.
    func length(endedBy size: Int, elements: Int) -> Int? {
        // Extensions fill whole words, so one byte more may take four.
        let bound = elements > self.elements ? size + (elements - self.elements + 3) & ~3 : size
        let length = max(largest, bound)
        return length - smallest <= Self.maximumPadding ? length : nil
    }
}

/// Step 7's sizes: where a frame's packets differ by a few bytes, RTP padding makes them equal.
///
/// libwebrtc cuts a frame evenly and makes the later packets one byte longer. It is decided once
/// for all viewers; those whose packets may be sent twice under one index get none of it.
extension Core {
    mutating func levelSizes(of publication: Int) {
        guard publications[publication].arrivalCount > 1, publications[publication].kind == .video
        else { return }
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            level(UInt32(bitPattern: encoding), from: publications[publication].firstArrival)
        }
    }

    private mutating func level(_ encoding: UInt32, from firstArrival: Int32) {
        var run = SizeRun()
        var place = firstArrival
        while place >= 0 {
            let next = pool[place].next
            if pool[place].encoding == encoding, !pool[place].flags.contains(.skipped) {
                let size = Int(pool[place].payloadLength)
                let elements = pool[place].elementLength
                if !run.append(place, size: size, elements: elements) {
                    let length = run.length(endedBy: size, elements: elements)
                    pad(run, to: length ?? run.largest, includingLast: length != nil)
                    run = SizeRun()
                    if length == nil { _ = run.append(place, size: size, elements: elements) }
                }
            }
            place = next
        }
        pad(run, to: run.largest, includingLast: false)
    }

    /// Pads a run's packets; what nothing follows may as well stay shorter.
    private mutating func pad(_ run: SizeRun, to length: Int, includingLast: Bool) {
        guard run.first >= 0 else { return }
        let encoding = pool[run.first].encoding
        var place = run.first
        while place >= 0 {
            if pool[place].encoding == encoding, !pool[place].flags.contains(.skipped) {
                guard place != run.last || includingLast else { return }
                pool.pad(place, count: length - Int(pool[place].payloadLength))
            }
            place = place == run.last ? -1 : pool[place].next
        }
    }
}

extension PacketPool {
    /// Writes RTP padding after a packet's payload (RFC 3550 §5.1), for who sends it along.
    mutating func pad(_ place: Int32, count: Int) {
        precondition(count >= 0 && count <= SizeRun.maximumPadding)
        self[place].padding = UInt8(count)
        guard count > 0 else { return }
        let end = Int(self[place].payloadOffset) + Int(self[place].payloadLength)
        precondition(end + count <= PacketBytes.stride)
        var packets = packets
        var bytes = packets.mutableBytes(at: place)
        for index in end..<end + count - 1 { bytes[index] = 0 }
        bytes[end + count - 1] = UInt8(count)
    }
}

extension PacketInfo {
    /// Bytes of the elements that are carried through, with a header of one byte each.
    fileprivate var elementLength: Int {
        length(audioLevel) + length(videoOrientation) + length(playoutDelay)
            + length(absoluteCaptureTime) + length(dependencyDescriptor)
    }

    private func length(_ element: Element) -> Int {
        element.length > 0 ? Int(element.length) + 1 : 0
    }
}
