import RTP
import WorkerInterface

/// Run of packets of one encoding that are padded to one size, to leave in one call.
///
/// UDP segmentation offload (GSO) takes datagrams of equal size to one address; only the last may
/// be shorter.
private struct SizeRun: BitwiseCopyable {
    /// Maximum padding that a packet gets, in bytes; one send call less is not worth more.
    static let maximumPadding = 8

    /// First and last packet, as pool indexes; -1 while there is none.
    var first: Int32 = -1
    var last: Int32 = -1
    /// Smallest and largest payload length, in bytes.
    var smallest = 0
    var largest = 0
    /// Bytes of header extensions, the same in all packets but the one that ends the run.
    var elements = 0

    /// Appends a packet, if the run can still be padded to one size.
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

    /// Returns the payload length to pad to, so that a packet of another size may end the run.
    ///
    /// The ending packet must not be longer than the others. Returns `nil` if the others would need
    /// too much padding.
    func length(endedBy size: Int, elements: Int) -> Int? {
        // Extensions fill whole words, so one byte more may take four.
        let bound = elements > self.elements ? size + (elements - self.elements + 3) & ~3 : size
        let length = max(largest, bound)
        return length - smallest <= Self.maximumPadding ? length : nil
    }
}

/// GSO padding: RTP padding that makes the packets of a frame equal in size.
///
/// libwebrtc splits a frame evenly and makes the later packets one byte longer. The padding is
/// decided once for all subscribers; those whose packets may be sent twice under one index get
/// none.
extension Core {
    mutating func padForGSO(of publication: Int) {
        guard publications[publication].arrivalCount > 1, publications[publication].kind.isVideo
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

    /// Pads a run's packets; the last one may stay shorter if no other packet ends the run.
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
    /// Writes RTP padding after a packet's payload (RFC 3550 §5.1), for subscribers that are sent
    /// it.
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
    /// Bytes of the header extensions that are forwarded, each with a header of one byte.
    fileprivate var elementLength: Int {
        length(audioLevel) + length(videoOrientation) + length(playoutDelay)
            + length(absoluteCaptureTime) + length(dependencyDescriptor)
    }

    private func length(_ element: Element) -> Int {
        element.length > 0 ? Int(element.length) + 1 : 0
    }
}
