import RTP

/// Limit on the memory that a peer can make OpenSSL reserve before the handshake is done.
///
/// OpenSSL reserves memory for a message by the length that its first fragment claims, for several
/// messages ahead. It also keeps whole records of the next epoch, in buffers of 16 kB.
struct DTLSBudget {
    /// Claimed length of each message, in bytes; no handshake has more messages than this.
    private var claimed = [16 of UInt32](repeating: 0)
    private var total: UInt32 = 0
    private var encrypted = 0

    /// Maximum size of all handshake messages from one side, in bytes; a certificate chain may have
    /// 16 kB.
    private static let maxTotal: UInt32 = 24_576
    private static let maxEncrypted = 2
    /// Bytes that AES-GCM adds to a record (RFC 5288 §3).
    ///
    /// On a shorter encrypted record, OpenSSL (since 3.0.19) reports the association as broken,
    /// although anyone could have sent that record.
    private static let minEncryptedLength = 24

    /// Returns the end offset of the record at `start`, or `nil` if no possibly genuine record is
    /// there.
    private static func end(ofRecordAt start: Int, of datagram: Span<UInt8>) -> Int? {
        guard start + 13 <= datagram.count else { return nil }
        let length = Int(datagram.u16(at: start + 11))
        let isEncrypted = datagram.u16(at: start + 3) > 0
        guard start + 13 + length <= datagram.count,
            !isEncrypted || length >= minEncryptedLength
        else { return nil }
        return start + 13 + length
    }

    /// Returns how many leading bytes of the datagram to pass to OpenSSL.
    ///
    /// These are whole records, up to the first one that exceeds the budget.
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

    /// Records the messages whose fragments one handshake record holds (RFC 6347 §4.2.2).
    ///
    /// Returns `false` if they exceed the budget.
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
