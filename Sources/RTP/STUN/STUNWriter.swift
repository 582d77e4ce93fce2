/// Writer of the STUN messages that an ICE agent sends (RFC 8489, RFC 8445 §7).
///
/// Every message ends in MESSAGE-INTEGRITY and FINGERPRINT. The caller computes the HMAC-SHA1 over
/// the bytes so far, as this module has no cryptography.
public struct STUNWriter {
    /// Computes HMAC-SHA1 with the short-term password.
    public typealias Integrity = (Span<UInt8>) -> InlineArray<20, UInt8>

    /// Maximum size of a message in bytes, not counting a long username or reason.
    public static var sizeLimit: Int { 160 }

    /// Appends a Binding success response that tells the peer its own address.
    ///
    /// `output` must have `sizeLimit` bytes free.
    public static func bindingSuccess(
        _ transaction: TransactionID,
        address: STUNAddress,
        into output: inout OutputSpan<UInt8>,
        integrity: Integrity
    ) {
        let start = output.count
        beginMessage(type: 0x0101, transaction, into: &output)
        if let ipv4 = address.ipv4 {
            beginAttribute(STUNAttribute.xorMappedAddress, length: 8, into: &output)
            output.append(bigEndian: UInt16(1))
            output.append(bigEndian: address.port ^ UInt16(STUNMessage.cookie >> 16))
            output.append(bigEndian: ipv4 ^ STUNMessage.cookie)
        } else {
            let mask = UInt64(STUNMessage.cookie) << 32 | UInt64(transaction.high)
            beginAttribute(STUNAttribute.xorMappedAddress, length: 20, into: &output)
            output.append(bigEndian: UInt16(2))
            output.append(bigEndian: address.port ^ UInt16(STUNMessage.cookie >> 16))
            output.append(bigEndian: address.high ^ mask)
            output.append(bigEndian: address.low ^ transaction.low)
        }
        finish(from: start, into: &output, integrity: integrity)
    }

    /// Appends a Binding error response with `code`, 300 to 699, and its reason.
    ///
    /// `output` must have `sizeLimit` bytes free, plus the size of `reason`.
    /// - Parameters:
    ///   - transaction: The request's transaction id.
    ///   - code: The error, 420 for unknown attributes, 487 for a role conflict.
    ///   - reason: The phrase for people, at most 127 characters of ASCII.
    ///   - unknown: The types for UNKNOWN-ATTRIBUTES, which is omitted if there are none.
    ///   - output: The destination of the message.
    ///   - integrity: The HMAC function.
    public static func bindingError(
        _ transaction: TransactionID,
        code: Int,
        reason: String,
        unknown: UnknownAttributes = UnknownAttributes(),
        into output: inout OutputSpan<UInt8>,
        integrity: Integrity
    ) {
        precondition((300...699).contains(code), "no such STUN error code")
        precondition(reason.utf8.count <= 763, "a reason has at most 763 bytes")
        let start = output.count
        beginMessage(type: 0x0111, transaction, into: &output)
        let reasonLength = reason.utf8.count
        beginAttribute(STUNAttribute.errorCode, length: 4 + reasonLength, into: &output)
        output.append(bigEndian: UInt16(0))
        output.append(UInt8(code / 100))
        output.append(UInt8(code % 100))
        output.append(copying: reason.utf8.span)
        pad(reasonLength, into: &output)
        if !unknown.isEmpty {
            beginAttribute(
                STUNAttribute.unknownAttributes,
                length: 2 * unknown.count,
                into: &output
            )
            for index in 0..<unknown.count { output.append(bigEndian: unknown[index]) }
            pad(2 * unknown.count, into: &output)
        }
        finish(from: start, into: &output, integrity: integrity)
    }

    /// Appends a Binding request of a controlling or controlled agent (RFC 8445 §7.2.2).
    ///
    /// `output` must have `sizeLimit` bytes free, plus the size of `username`.
    public static func bindingRequest(
        _ transaction: TransactionID,
        username: Span<UInt8>,
        priority: UInt32,
        tieBreaker: UInt64,
        isControlling: Bool = true,
        useCandidate: Bool,
        into output: inout OutputSpan<UInt8>,
        integrity: Integrity
    ) {
        precondition(username.count <= 513, "a USERNAME has at most 513 bytes")
        let start = output.count
        beginMessage(type: 0x0001, transaction, into: &output)
        beginAttribute(STUNAttribute.username, length: username.count, into: &output)
        output.append(copying: username)
        pad(username.count, into: &output)
        beginAttribute(STUNAttribute.priority, length: 4, into: &output)
        output.append(bigEndian: priority)
        let role = isControlling ? STUNAttribute.iceControlling : STUNAttribute.iceControlled
        beginAttribute(role, length: 8, into: &output)
        output.append(bigEndian: tieBreaker)
        if useCandidate {
            beginAttribute(STUNAttribute.useCandidate, length: 0, into: &output)
        }
        finish(from: start, into: &output, integrity: integrity)
    }
}

extension STUNWriter {
    /// Appends a header; `finish` sets its length.
    private static func beginMessage(
        type: UInt16,
        _ transaction: TransactionID,
        into output: inout OutputSpan<UInt8>
    ) {
        output.append(bigEndian: type)
        output.append(bigEndian: UInt16(0))
        output.append(bigEndian: STUNMessage.cookie)
        output.append(bigEndian: transaction.high)
        output.append(bigEndian: transaction.low)
    }

    private static func beginAttribute(
        _ type: UInt16,
        length: Int,
        into output: inout OutputSpan<UInt8>
    ) {
        output.append(bigEndian: type)
        output.append(bigEndian: UInt16(length))
    }

    private static func pad(_ length: Int, into output: inout OutputSpan<UInt8>) {
        output.append(repeating: 0, count: -length & 3)
    }

    /// Appends MESSAGE-INTEGRITY and FINGERPRINT; each covers a length that includes itself.
    private static func finish(
        from start: Int,
        into output: inout OutputSpan<UInt8>,
        integrity: Integrity
    ) {
        let body = output.count - start - STUNMessage.headerSize
        setLength(body + 24, from: start, in: &output)
        let tag = integrity(output.span.extracting(start..<output.count))
        beginAttribute(STUNAttribute.messageIntegrity, length: 20, into: &output)
        for index in tag.indices { output.append(tag[index]) }

        setLength(body + 32, from: start, in: &output)
        let sum = Checksum.crc32(output.span.extracting(start..<output.count))
        beginAttribute(STUNAttribute.fingerprint, length: 4, into: &output)
        output.append(bigEndian: sum ^ STUNMessage.fingerprintMask)
    }

    private static func setLength(
        _ length: Int,
        from start: Int,
        in output: inout OutputSpan<UInt8>
    ) {
        var written = output.mutableSpan
        written.put(UInt16(length), at: start + 2)
    }
}
