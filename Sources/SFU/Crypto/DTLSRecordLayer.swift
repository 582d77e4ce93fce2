internal import COpenSSL
import RTP

/// Header of a DTLS record (RFC 6347 §4.1), of which all bytes are there.
struct DTLSRecordHeader {
    static let length = 13

    let type: UInt8
    let version: UInt16
    let epoch: UInt16
    /// Number of the record in its epoch, 48 bits.
    let number: UInt64
    /// Offset in the datagram where the record ends.
    let end: Int

    /// Reads the record at `start`; `nil` if the datagram does not hold all of it.
    init?(at start: Int, of datagram: Span<UInt8>) {
        guard start >= 0, datagram.count &- start >= Self.length else { return nil }
        type = datagram[start]
        version = datagram.u16(at: start &+ 1)
        let counter = datagram.u64(at: start &+ 3)
        epoch = UInt16(truncatingIfNeeded: counter >> 48)
        number = counter & (1 << 48 &- 1)
        end = start &+ Self.length &+ Int(datagram.u16(at: start &+ 11))
        guard end <= datagram.count else { return nil }
    }
}

/// DTLS 1.2 record layer of epoch 1, with AES-GCM (RFC 6347 §4.1, RFC 5288).
///
/// The keys lie in one block of memory, which is wiped when the record layer goes.
@safe
struct DTLSRecordLayer: ~Copyable {
    enum ContentType: UInt8 { case alert = 21, handshake, applicationData }

    private let state: UnsafeMutablePointer<DTLSRecordState>
    /// Copy of the state for the next process, which is stored before anything depends on it.
    private var place: SavedPlace?

    /// Bytes that a record has more than its content: header, explicit nonce and tag.
    static let overhead = DTLSRecordHeader.length + nonceLength + tagLength
    private static let version: UInt16 = 0xfefd
    private static let nonceLength = 8
    private static let tagLength = 16
    /// Limit on the content of a record, in bytes (RFC 5246 §6.2.1).
    private static let maxContent = 1 << 14

    /// Takes over the state and wipes it; `nil` if it cannot be one of an association.
    init?(taking state: inout DTLSRecordState) {
        defer { state.wipe() }
        guard state.isUsable else { return nil }
        unsafe self.state = .allocate(capacity: 1)
        unsafe self.state.initialize(to: state)
    }

    deinit {
        unsafe state.pointee.wipe()
        unsafe state.deallocate()
    }

    /// Stores the state at a place, now and whenever it changes.
    mutating func save(at place: SavedPlace) {
        unsafe place.note(state.pointee)
        self.place = place
    }

    /// Authenticates and decrypts one whole record, and appends its content to `output`.
    ///
    /// - Returns: The type of the content; `nil` if the record is not genuine, was accepted before,
    ///   is older than the replay window, or if `output` has no room for it.
    mutating func open(
        _ record: Span<UInt8>,
        into output: inout OutputSpan<UInt8>
    ) -> ContentType? {
        guard let header = DTLSRecordHeader(at: 0, of: record), header.end == record.count,
            let type = ContentType(rawValue: header.type), header.version == Self.version,
            header.epoch == 1, unsafe state.pointee.isNew(header.number)
        else { return nil }
        let length = record.count &- Self.overhead
        guard length >= 0, length <= Self.maxContent, length <= output.freeCapacity else {
            return nil
        }
        let aad = Self.authenticated(header.number, type, length: length)
        let nonce = record.u64(at: DTLSRecordHeader.length)
        let sealed = record.extracting(
            droppingFirst: DTLSRecordHeader.length &+ Self.nonceLength
        )
        var isGenuine = false
        unsafe output.withUnsafeMutableBufferPointer { buffer, filled in
            unsafe sealed.withUnsafeBufferPointer { sealed in
                guard let target = buffer.baseAddress, let source = sealed.baseAddress
                else { return }
                isGenuine = unsafe open(
                    source,
                    length: length,
                    to: target + filled,
                    nonce: nonce,
                    authenticating: aad
                )
                if isGenuine {
                    filled += length
                } else {
                    unsafe OPENSSL_cleanse(target + filled, length)
                }
            }
        }
        guard isGenuine else { return nil }
        unsafe state.pointee.accept(header.number)
        unsafe place?.noteDTLSIn(newest: state.pointee.readNewest, window: state.pointee.window)
        return type
    }

    /// Encrypts one record and appends it to `output`.
    ///
    /// - Returns: Whether the record was made: the content has at most 16,384 bytes, there is room
    ///   for it, and numbers are left.
    mutating func seal(
        _ type: ContentType,
        _ content: Span<UInt8>,
        into output: inout OutputSpan<UInt8>
    ) -> Bool {
        let length = content.count
        let number = unsafe state.pointee.writeNext
        guard length <= Self.maxContent, output.freeCapacity >= length &+ Self.overhead,
            number < DTLSRecordState.numberLimit
        else { return false }
        unsafe state.pointee.writeNext = number &+ 1
        place?.noteDTLSOut(next: number &+ 1)
        let nonce = unsafe number &+ state.pointee.nonceOffset
        let aad = Self.authenticated(number, type, length: length)
        output.append(type.rawValue)
        output.append(bigEndian: Self.version)
        for index in 0..<8 { output.append(aad[index]) }
        output.append(
            bigEndian: UInt16(truncatingIfNeeded: length &+ Self.nonceLength &+ Self.tagLength)
        )
        output.append(bigEndian: nonce)
        var isDone = false
        unsafe output.withUnsafeMutableBufferPointer { buffer, filled in
            guard let target = buffer.baseAddress else { return }
            isDone = unsafe content.withUnsafeBufferPointer { content in
                unsafe seal(
                    content.baseAddress,
                    length: length,
                    to: target + filled,
                    nonce: nonce,
                    authenticating: aad
                )
            }
            if isDone { filled += length + Self.tagLength }
        }
        if !isDone { output.removeLast(DTLSRecordHeader.length + Self.nonceLength) }
        return isDone
    }

    /// Returns our last flight if the peer may have it once more.
    mutating func flightToRepeat(at now: Instant) -> [UInt8]? {
        let flight = unsafe state.pointee.flightToRepeat(at: now)
        unsafe place?.noteDTLSRepeats(state.pointee.repeats)
        return flight
    }

    /// Returns the additional data of a record (RFC 5246 §6.2.3.3): number with epoch, type,
    /// version and length.
    private static func authenticated(
        _ number: UInt64,
        _ type: ContentType,
        length: Int
    ) -> [13 of UInt8] {
        let counter = 1 << 48 | number
        return [13 of UInt8] { index in
            switch index {
            case 0..<8: UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64(index)))
            case 8: type.rawValue
            case 9: UInt8(truncatingIfNeeded: version >> 8)
            case 10: UInt8(truncatingIfNeeded: version)
            case 11: UInt8(truncatingIfNeeded: length >> 8)
            default: UInt8(truncatingIfNeeded: length)
            }
        }
    }
}

// AES-GCM by OpenSSL. A context is made for each record: an idle association then needs none.
extension DTLSRecordLayer {
    private enum Direction: Int32 { case open, seal }

    /// Decrypts `length` bytes, which the tag follows; returns whether the tag is right.
    private func open(
        _ source: UnsafePointer<UInt8>,
        length: Int,
        to target: UnsafeMutablePointer<UInt8>,
        nonce: UInt64,
        authenticating aad: [13 of UInt8]
    ) -> Bool {
        guard let context = unsafe start(.open, nonce, aad) else { return false }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        let tag = unsafe UnsafeMutablePointer(mutating: source + length)
        var count: Int32 = 0
        return unsafe EVP_CipherUpdate(context, target, &count, source, Int32(length)) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), tag) == 1
            && EVP_CipherFinal_ex(context, target + length, &count) == 1
    }

    /// Encrypts `length` bytes and lets the tag follow them.
    private func seal(
        _ source: UnsafePointer<UInt8>?,
        length: Int,
        to target: UnsafeMutablePointer<UInt8>,
        nonce: UInt64,
        authenticating aad: [13 of UInt8]
    ) -> Bool {
        guard let context = unsafe start(.seal, nonce, aad) else { return false }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var count: Int32 = 0
        if let source = unsafe source, length > 0 {
            guard unsafe EVP_CipherUpdate(context, target, &count, source, Int32(length)) == 1
            else { return false }
        }
        let tag = unsafe target + length
        return unsafe EVP_CipherFinal_ex(context, tag, &count) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), tag) == 1
    }

    /// Makes a context with the key and nonce of that direction and the additional data.
    private func start(
        _ direction: Direction,
        _ nonce: UInt64,
        _ aad: [13 of UInt8]
    ) -> OpaquePointer? {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        let length = unsafe Int(state.pointee.keyLength)
        let offset = direction == .seal ? 0 : length + DTLSRecordState.saltLength
        let cipher = unsafe length == 16 ? Self.aes128 : Self.aes256
        let isReady = unsafe state.pointee.keys.span.withUnsafeBufferPointer { keys in
            guard let key = unsafe keys.baseAddress.map({ unsafe $0 + offset }) else {
                return false
            }
            // Salt, then the explicit nonce (RFC 5288 §3).
            let vector = [12 of UInt8] { index in
                index < DTLSRecordState.saltLength
                    ? unsafe key[length + index]
                    : UInt8(truncatingIfNeeded: nonce >> (88 - 8 * UInt64(index)))
            }
            var count: Int32 = 0
            return unsafe vector.span.withUnsafeBufferPointer { vector in
                unsafe aad.span.withUnsafeBufferPointer { aad in
                    unsafe EVP_CipherInit_ex(
                        context,
                        cipher,
                        nil,
                        key,
                        vector.baseAddress,
                        direction.rawValue
                    ) == 1
                        && EVP_CipherUpdate(
                            context,
                            nil,
                            &count,
                            aad.baseAddress,
                            Int32(aad.count)
                        ) == 1
                }
            }
        }
        guard isReady else {
            unsafe EVP_CIPHER_CTX_free(context)
            return nil
        }
        return unsafe context
    }

    /// Fetched once, as OpenSSL's lookup by name is slow.
    private nonisolated(unsafe) static let aes128 = unsafe EVP_CIPHER_fetch(nil, "AES-128-GCM", nil)
    private nonisolated(unsafe) static let aes256 = unsafe EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)
}
