import RTP
import Recording
import SFU

/// A recorded track: packets that have passed ingress, with whatever in them.
///
/// The first byte names the codec; then of each packet a byte of flags, how far its number is
/// from the last one's, and its payload with two bytes before it that say its length.
func readTrack(_ bytes: [UInt8]) -> Int {
    var cursor = Cursor(bytes)
    let codecs: [Codec] = [.opus, .vp8, .vp9, .h264, .av1]
    let codec = codecs[Int(cursor.byte()) % codecs.count]
    var reader = TrackReader(kind: codec.kind)
    var now = Instant(nanoseconds: 1_000_000_000)
    var number: Int64 = 1_000
    var timestamp: UInt32 = 0xffff_0000
    var epoch: UInt32 = 1
    var events: [TrackEvent] = []
    var sum = 0
    while !cursor.isAtEnd {
        let flags = cursor.byte()
        let distance = Int64(Int8(bitPattern: cursor.byte()))
        if flags & 0x80 != 0 {
            if distance == 0 { reader.mute(at: now) }
            now = now.advanced(milliseconds: 10 * abs(distance))
            reader.expire(at: now, into: &events)
            continue
        }
        if flags & 0x10 != 0 { epoch += 1 }
        if flags & 0x40 == 0 { timestamp &+= 3_000 }
        number += distance
        var packet = TapPacket(
            publication: PublicationID(index: 1, generation: 1),
            codec: codec,
            number: number,
            timestamp: timestamp,
            arrival: now,
            payload: cursor.chunk()
        )
        packet.isKeyframeStart = flags & 0x01 != 0
        packet.isMarked = flags & 0x02 != 0
        packet.isPadding = flags & 0x04 != 0
        packet.followsGap = flags & 0x08 != 0
        packet.position = flags & 0x20 != 0 ? 1 : 0
        packet.best = packet.position
        packet.epoch = epoch
        packet.width = codec.kind == .video ? 640 : 0
        packet.height = codec.kind == .video ? 360 : 0
        now = now.advanced(milliseconds: 1)
        reader.receive(packet, at: now, into: &events)
        sum += reader.wish ?? 7
    }
    reader.expire(at: now.advanced(milliseconds: 10_000), into: &events)
    for case .sample(let sample) in events {
        sum += sample.bytes.count + (sample.format?.configuration.count ?? 0)
    }
    return sum + events.count
}
