/// Ledger of the encrypted packet sent under each packet index of each SSRC (RFC 3711 §3.3.1).
///
/// One index must never carry two packets: with GCM that reveals the key's secrets (RFC 7714 §8).
/// SSRCs must be unique over the call.
final class IndexLedger {
    private struct Stream {
        var highest: Int64
        var hashes: [Int64: Int] = [:]
    }

    /// Number of indexes that are remembered.
    ///
    /// Usually all; in a long run more than any receiver's replay window.
    private let memory: Int64
    private var streams: [UInt32: Stream] = [:]
    private(set) var violations = 0
    private(set) var packets = 0
    private(set) var repeats = 0

    init(memory: Int64 = .max) { self.memory = memory }

    /// Records a datagram that left the core; ignores all but SRTP.
    func note(_ datagram: [UInt8]) {
        guard datagram.count > 12, datagram[0] >> 6 == 2, !(192...223).contains(datagram[1]) else {
            return
        }
        packets += 1
        let number = datagram.u16(2)
        var stream = streams.removeValue(forKey: datagram.ssrc) ?? Stream(highest: Int64(number))
        let step = Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: stream.highest)))
        let index = stream.highest + step
        let hash = datagram.hashValue
        if let before = stream.hashes.updateValue(hash, forKey: index) {
            repeats += 1
            if before != hash { violations += 1 }
        }
        if index >= memory { stream.hashes[index - memory] = nil }
        stream.highest = max(stream.highest, index)
        streams[datagram.ssrc] = stream
    }
}
