import RTP

/// Fields of one outgoing packet that differ from the incoming one.
struct Rewriting: BitwiseCopyable {
    var span: RTPRewriter.SequenceSpan
    var sequence: SequenceNumber
    var payloadType: UInt8
    var ssrc: SSRC
    /// Opus payload type that RED block headers name.
    var opusPayloadType: UInt8 = 0
    /// Number of the packet that a retransmission repairs (RFC 4588 §4).
    var original: SequenceNumber?
    /// Whether only the primary block of a RED packet is sent.
    var stripsRED = false
    /// Absolute send time, 6.18 fixed-point seconds; `nil` leaves the extension out.
    var sendTime: UInt32?
    var transportSequence: UInt16?
    /// Bytes of RTP padding after the payload.
    var padding: UInt8 = 0
    /// Whether the payload is left out, so that the packet only takes a sequence number.
    var isFiller = false
}

/// Writer of the rewritten parts of an outgoing packet: header, extensions, payload descriptor.
///
/// The rest of the payload goes from the received packet straight into the cipher.
struct PacketWriter: BitwiseCopyable {
    private var position = 12
    private var isTwoByte = false

    /// Writes the header and the rewritten start of the payload.
    ///
    /// Returns the length of the header, the number of payload bytes written after it, and the
    /// offset in `packet` of the first byte that remains to be sent.
    static func write(
        _ info: borrowing PacketInfo,
        of packet: Span<UInt8>,
        for slot: borrowing Slot,
        longMID: String,
        as rewriting: borrowing Rewriting,
        into output: inout MutableSpan<UInt8>
    ) -> (header: Int, prefix: Int, consumed: Int) {
        var writer = Self()
        writer.begin(info, for: slot, longMID: longMID, into: &output)
        writer.writeExtensions(info, of: packet, for: slot, as: rewriting, into: &output)
        writer.writeFixedHeader(info, as: rewriting, into: &output)
        let header = writer.position
        var consumed = Int(info.payloadOffset)
        if let original = rewriting.original {
            output.put(original.rawValue, at: writer.position)
            writer.position += 2
        }
        if rewriting.isFiller {
            // No payload: a filler is empty, or padding that counts itself where it is no
            // retransmission.
            if rewriting.padding > 0 { writer.append(rewriting.padding, into: &output) }
            consumed = packet.count
        } else if rewriting.stripsRED {
            consumed += Int(info.primaryOffset)
        } else if info.descriptorLength > 0 {
            writer.writeDescriptor(info, of: packet, as: rewriting, into: &output)
            consumed += Int(info.descriptorLength)
        }
        return (header, writer.position - header, consumed)
    }

    private func writeFixedHeader(
        _ info: borrowing PacketInfo,
        as rewriting: borrowing Rewriting,
        into output: inout MutableSpan<UInt8>
    ) {
        output[0] = (position > 12 ? 0x90 : 0x80) | (rewriting.padding > 0 ? 0x20 : 0)
        var marker: UInt8 = info.marks.contains(rewriting.span.point) ? 0x80 : 0
        if rewriting.isFiller { marker = 0 }
        output[1] = marker | rewriting.payloadType
        output.put(rewriting.sequence.rawValue, at: 2)
        output.put(info.timestamp &+ rewriting.span.timestampOffset, at: 4)
        output.put(rewriting.ssrc.rawValue, at: 8)
    }

    /// Chooses the form of the header extensions and writes the first one, the MID.
    private mutating func begin(
        _ info: borrowing PacketInfo,
        for slot: borrowing Slot,
        longMID: String,
        into output: inout MutableSpan<UInt8>
    ) {
        isTwoByte = slot.needsTwoByteForm
        // A long element needs the two-byte form for all (RFC 8285 §4.3).
        if info.flags.contains(.frameNumbered), info.dependencyDescriptor.length > 16 {
            isTwoByte = true
        }
        position = 16
        let length = Int(slot.midLength)
        guard length > 0 else { return }
        begin(slot.extensions[.mid], length: length, into: &output)
        if slot.hasLongMID {
            for byte in longMID.utf8.prefix(length) { append(byte, into: &output) }
        } else {
            for index in 0..<length { append(slot.mid[index], into: &output) }
        }
    }

    private mutating func writeExtensions(
        _ info: borrowing PacketInfo,
        of packet: Span<UInt8>,
        for slot: borrowing Slot,
        as rewriting: borrowing Rewriting,
        into output: inout MutableSpan<UInt8>
    ) {
        let ids = slot.extensions
        if let time = rewriting.sendTime {
            begin(ids[.absoluteSendTime], length: 3, into: &output)
            append(UInt8(truncatingIfNeeded: time >> 16), into: &output)
            append(UInt8(truncatingIfNeeded: time >> 8), into: &output)
            append(UInt8(truncatingIfNeeded: time), into: &output)
        }
        if let number = rewriting.transportSequence {
            begin(ids[.transportSequenceNumber], length: 2, into: &output)
            append(UInt8(truncatingIfNeeded: number >> 8), into: &output)
            append(UInt8(truncatingIfNeeded: number), into: &output)
        }
        copy(info.audioLevel, of: packet, id: ids[.audioLevel], into: &output)
        copy(info.videoOrientation, of: packet, id: ids[.videoOrientation], into: &output)
        copy(info.absoluteCaptureTime, of: packet, id: ids[.absoluteCaptureTime], into: &output)
        writeDependencyDescriptor(
            info,
            of: packet,
            id: ids[.dependencyDescriptor],
            as: rewriting,
            into: &output
        )
        finishExtensions(into: &output)
    }

    /// Writes the dependency descriptor with a frame number that is continuous over all sources.
    ///
    /// See AV1 RTP specification, A.8.2. Only AV1 needs it: the other codecs number frames in their
    /// own descriptors, and Chromium numbers their frames over all simulcast layers, which no
    /// single offset follows.
    private mutating func writeDependencyDescriptor(
        _ info: borrowing PacketInfo,
        of packet: Span<UInt8>,
        id: UInt8,
        as rewriting: borrowing Rewriting,
        into output: inout MutableSpan<UInt8>
    ) {
        let start = position
        guard info.flags.contains(.frameNumbered), !rewriting.isFiller else { return }
        copy(info.dependencyDescriptor, of: packet, id: id, into: &output)
        guard position > start else { return }
        let element = position - Int(info.dependencyDescriptor.length)
        output.put(info.pictureID &+ rewriting.span.pictureOffset, at: element + 1)
    }

    private mutating func finishExtensions(into output: inout MutableSpan<UInt8>) {
        guard position > 16 else {
            position = 12
            return
        }
        while position & 3 != 0 { append(0, into: &output) }
        output.put(UInt16(isTwoByte ? 0x1000 : 0xbede), at: 12)
        output.put(UInt16(truncatingIfNeeded: (position - 16) / 4), at: 14)
    }

    private mutating func copy(
        _ element: PacketInfo.Element,
        of packet: Span<UInt8>,
        id: UInt8,
        into output: inout MutableSpan<UInt8>
    ) {
        guard id != 0, element.length > 0 else { return }
        begin(id, length: Int(element.length), into: &output)
        let start = Int(element.offset)
        for index in start..<start + Int(element.length) { append(packet[index], into: &output) }
    }

    private mutating func begin(_ id: UInt8, length: Int, into output: inout MutableSpan<UInt8>) {
        if isTwoByte {
            append(id, into: &output)
            append(UInt8(truncatingIfNeeded: length), into: &output)
        } else {
            append(id << 4 | UInt8(truncatingIfNeeded: length - 1), into: &output)
        }
    }

    private mutating func append(_ byte: UInt8, into output: inout MutableSpan<UInt8>) {
        output[position] = byte
        position += 1
    }

    /// Copies the payload descriptor with rewritten picture id and TL0 picture index.
    private mutating func writeDescriptor(
        _ info: borrowing PacketInfo,
        of packet: Span<UInt8>,
        as rewriting: borrowing Rewriting,
        into output: inout MutableSpan<UInt8>
    ) {
        let start = position
        let source = Int(info.payloadOffset)
        for index in source..<source + Int(info.descriptorLength) {
            append(packet[index], into: &output)
        }
        if info.primaryOffset > 0 {
            renameBlocks(from: start, as: rewriting, into: &output)
        }
        if info.pictureIDOffset > 0 {
            let value = info.pictureID &+ rewriting.span.pictureOffset
            let at = start + Int(info.pictureIDOffset)
            if info.flags.contains(.longPictureID) {
                output.put(0x8000 | value & 0x7fff, at: at)
            } else {
                output[at] = UInt8(truncatingIfNeeded: value & 0x7f)
            }
        }
        if info.tl0PictureIndexOffset > 0 {
            let at = start + Int(info.tl0PictureIndexOffset)
            output[at] = info.tl0PictureIndex &+ rewriting.span.tl0Offset
        }
    }

    /// Rewrites RED block headers to the subscriber's payload type (RFC 2198 §3).
    private func renameBlocks(
        from start: Int,
        as rewriting: borrowing Rewriting,
        into output: inout MutableSpan<UInt8>
    ) {
        var header = start
        while header < position {
            let more = output[header] & 0x80
            output[header] = more | rewriting.opusPayloadType
            header += more != 0 ? 4 : position - header
        }
    }
}
