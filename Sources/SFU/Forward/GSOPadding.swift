import RTP
import WorkerInterface

/// Run of packets of one encoding that are padded to one size, to leave in one call.
///
/// UDP segmentation offload (GSO) takes datagrams of equal size to one address; only the last may
/// be shorter.
private struct SizeRun: BitwiseCopyable {
    /// Maximum padding that a packet gets, in bytes; one send call less is not worth more.
    static let maximumPadding = 8

    /// First and last packet, if there is any.
    var first: PacketPlace?
    var last: PacketPlace?
    /// Smallest and largest payload length, in bytes.
    var smallest = 0
    var largest = 0
    /// Bytes of header extensions, the same in all packets but the one that ends the run.
    var elements = 0

    /// Appends a packet, if the run can still be padded to one size.
    mutating func append(_ place: PacketPlace, size: Int, elements: Int) -> Bool {
        guard first != nil else {
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
extension Forwarder {
    mutating func padForGSO(of publication: PublicationIndex, _ receiver: inout Receiver) {
        guard receiver.publications[publication].arrivalCount > 1,
            receiver.publications[publication].kind.isVideo
        else { return }
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            level(
                encoding,
                from: receiver.publications[publication].firstArrival,
                &receiver
            )
        }
    }

    private mutating func level(
        _ encoding: EncodingIndex,
        from firstArrival: PacketPlace?,
        _ receiver: inout Receiver
    ) {
        var run = SizeRun()
        var next = firstArrival
        while let place = next {
            next = receiver.pool[place].next.value
            if receiver.pool[place].encoding == encoding,
                !receiver.pool[place].flags.contains(.skipped)
            {
                let size = Int(receiver.pool[place].payloadLength)
                let elements = receiver.pool[place].elementLength
                if !run.append(place, size: size, elements: elements) {
                    let length = run.length(endedBy: size, elements: elements)
                    pad(run, to: length ?? run.largest, includingLast: length != nil, &receiver)
                    run = SizeRun()
                    if length == nil { _ = run.append(place, size: size, elements: elements) }
                }
            }
        }
        pad(run, to: run.largest, includingLast: false, &receiver)
    }

    /// Pads a run's packets; the last one may stay shorter if no other packet ends the run.
    private mutating func pad(
        _ run: SizeRun,
        to length: Int,
        includingLast: Bool,
        _ receiver: inout Receiver
    ) {
        guard let first = run.first else { return }
        let encoding = receiver.pool[first].encoding
        var next = run.first
        while let place = next {
            if receiver.pool[place].encoding == encoding,
                !receiver.pool[place].flags.contains(.skipped)
            {
                guard place != run.last || includingLast else { return }
                receiver.pool.pad(place, count: length - Int(receiver.pool[place].payloadLength))
            }
            next = place == run.last ? nil : receiver.pool[place].next.value
        }
    }
}

extension PacketPool {
    /// Writes RTP padding after a packet's payload (RFC 3550 §5.1), for subscribers that are sent
    /// it.
    mutating func pad(_ place: PacketPlace, count: Int) {
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
        length(audioLevel) + length(videoOrientation)
            + length(absoluteCaptureTime) + length(dependencyDescriptor)
    }

    private func length(_ element: Element) -> Int {
        element.length > 0 ? Int(element.length) + 1 : 0
    }
}
