import RTP

/// State of a DTLS 1.2 association after its handshake, as it also outlives the process.
///
/// It holds keys: whoever makes one wipes it.
struct DTLSRecordState: BitwiseCopyable {
    /// Number of the next record to send, in epoch 1.
    var writeNext: UInt64 = 0
    /// Difference from a sent record's number to its explicit nonce (RFC 5288 §3).
    ///
    /// OpenSSL starts at a random nonce and counts up. With the same difference, no later record
    /// can meet a nonce of OpenSSL.
    var nonceOffset: UInt64 = 0
    /// Highest number of an authenticated record from the peer, if `window` is not 0.
    var readNewest: UInt64 = 0
    /// Replay window (RFC 6347 §4.1.2.6): bit n stands for the record `readNewest` - n.
    var window: UInt64 = 0
    /// Time until which our last flight is sent again, in nanoseconds.
    var flightEnd: Int64 = 0
    /// Bytes of each key: 16 or 32 for AES-128-GCM or AES-256-GCM; 0 without an association.
    var keyLength: UInt8 = 0
    /// Length of `flight`; 0 if the peer sent the last flight of the handshake.
    var flightLength: UInt8 = 0
    /// Number of times that the last flight was sent again.
    var repeats: UInt8 = 0
    /// Our key and salt, then the peer's.
    var keys = [72 of UInt8](repeating: 0)
    /// Datagram of our last flight: ChangeCipherSpec and Finished, 75 bytes.
    var flight = [96 of UInt8](repeating: 0)

    /// Bytes of the implicit part of a nonce.
    static let saltLength = 4
    static let maxKeyLength = 32
    static let maxFlightLength = 96
    /// Numbers from here on are never used: a record has 48 bits for its number.
    static let numberLimit: UInt64 = 1 << 48 - 1
    /// How long the last flight is sent again: twice the maximum segment lifetime of TCP (RFC 6347
    /// §4.2.4).
    static let flightMilliseconds: Int64 = 240_000
    /// How often the last flight is sent again.
    static let maxRepeats: UInt8 = 10

    /// Whether an association can go on with it.
    var isUsable: Bool {
        (keyLength == 16 || keyLength == 32) && writeNext <= Self.numberLimit
            && readNewest <= Self.numberLimit && Int(flightLength) <= Self.maxFlightLength
    }

    /// Returns whether a record of this number was not accepted before, and is not too old to know.
    func isNew(_ number: UInt64) -> Bool {
        if window == 0 || number > readNewest { return true }
        let age = readNewest &- number
        return age < 64 && window >> age & 1 == 0
    }

    /// Records that the record of this number was authenticated.
    mutating func accept(_ number: UInt64) {
        if window == 0 || number > readNewest {
            window = window << (number &- min(readNewest, number)) | 1
            readNewest = number
        } else {
            window |= 1 << (readNewest &- number)
        }
    }

    /// Keeps our last flight for a peer that misses it; one that is too long is not kept.
    mutating func keep(_ flight: Span<UInt8>, at now: Instant) {
        guard flight.count <= Self.maxFlightLength else { return }
        for index in flight.indices { self.flight[index] = flight[index] }
        flightLength = UInt8(truncatingIfNeeded: flight.count)
        flightEnd = now.advanced(milliseconds: Self.flightMilliseconds).nanoseconds
    }

    /// Returns our last flight if it may be sent once more.
    mutating func flightToRepeat(at now: Instant) -> [UInt8]? {
        guard flightLength > 0, repeats < Self.maxRepeats, now.nanoseconds < flightEnd else {
            return nil
        }
        repeats &+= 1
        return (0..<Int(flightLength)).map { flight[$0] }
    }
}
