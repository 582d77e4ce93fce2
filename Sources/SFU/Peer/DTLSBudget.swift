import RTP

/// What a peer may make OpenSSL remember before the handshake is done.
///
/// OpenSSL reserves memory for a message by the length that its first fragment claims, for
/// several messages ahead, and keeps records of the next epoch whole, in buffers of 16 kB.
struct DTLSBudget {
    /// The length claimed for each message, in bytes; no handshake has more of them.
    private var claimed = [16 of UInt32](repeating: 0)
    private var total: UInt32 = 0
    private var encrypted = 0

    /// All messages of one side together, in bytes; a chain of certificates may have 16 kB.
    private static let maxTotal: UInt32 = 24_576
    private static let maxEncrypted = 2
    /// What AES-GCM adds to a record, in bytes (RFC 5288 §3).
    ///
    /// Of a shorter one OpenSSL (since 3.0.19) says that the association is broken, though
    /// anybody could have sent it.
    private static let minEncryptedLength = 24

    /// How many of the datagram's bytes are records that could be genuine.
    static func wholeRecords(of datagram: Span<UInt8>) -> Int {
        var start = 0
        while let end = end(ofRecordAt: start, of: datagram) { start = end }
        return start
    }

    /// Where the record that begins at `start` ends; `nil` where none does that could be genuine.
    private static func end(ofRecordAt start: Int, of datagram: Span<UInt8>) -> Int? {
        guard start + 13 <= datagram.count else { return nil }
        let length = Int(datagram.u16(at: start + 11))
        let isEncrypted = datagram.u16(at: start + 3) > 0
        guard start + 13 + length <= datagram.count,
            !isEncrypted || length >= minEncryptedLength
        else { return nil }
        return start + 13 + length
    }

    /// How many of the datagram's bytes OpenSSL may have: whole records up to one too much.
    mutating func admit(_ datagram: Span<UInt8>) -> Int {
        var start = 0
        while let end = Self.end(ofRecordAt: start, of: datagram) {
            if datagram.u16(at: start + 3) > 0 {
                guard encrypted < Self.maxEncrypted else { return start }
                encrypted += 1
            } else if datagram[start] == 22 {
                guard claim(datagram.extracting(start + 13..<end)) else { return start }
            }
            start = end
        }
        return start
    }

    /// Notes the messages that one handshake record has fragments of (RFC 6347 §4.2.2).
    private mutating func claim(_ record: Span<UInt8>) -> Bool {
        var start = 0
        while start + 12 <= record.count {
            let length = record.u24(at: start + 1)
            let message = Int(record.u16(at: start + 4))
            guard message < claimed.count else { return false }
            if length > claimed[message] {
                guard total + length - claimed[message] <= Self.maxTotal else { return false }
                total += length - claimed[message]
                claimed[message] = length
            }
            start += 12 + Int(record.u24(at: start + 9))
        }
        return true
    }
}
