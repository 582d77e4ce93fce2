import TestSupport
import Testing

@testable import RTP

/// A message of RFC 5769; its password is the same in all three.
private struct Vector: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var bytes: [UInt8]
    var messageClass: STUNClass
    var address: STUNAddress?
}

private let password = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)

private let vectors = [
    Vector(
        testDescription: "§2.1 request",
        bytes: hex(
            """
            000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74
            002400046e0001ff80290008932ff9b151263b36000600096576746a3a6836765920202000080014
            9aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
            """
        ),
        messageClass: .request
    ),
    Vector(
        testDescription: "§2.2 IPv4 response",
        bytes: hex(
            """
            0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f722000200008
            0001a147e112a643000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96
            """
        ),
        messageClass: .success,
        address: STUNAddress(high: 0, low: 0xffff_c000_0201, port: 32_853)
    ),
    Vector(
        testDescription: "§2.3 IPv6 response",
        bytes: hex(
            """
            010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f722000200014
            0002a1470113a9faa5d3f179bc25f4b5bed2b9d900080014a382954e4be67bf11784c97c8292c275
            bfe3ed4180280004c8fb0b4c
            """
        ),
        messageClass: .success,
        address: STUNAddress(
            high: 0x2001_0db8_1234_5678,
            low: 0x0011_2233_4455_6677,
            port: 32_853
        )
    ),
]

/// Computes the HMAC for the writers.
private func integrity(_ input: Span<UInt8>) -> InlineArray<20, UInt8> {
    let tag = SHA1.hmac(input.array, key: password)
    return InlineArray { tag[$0] }
}

private let transaction = TransactionID(high: 0xb7e7_a701, low: 0xbc34_d686_fa87_dfae)

@Suite struct STUNVectorTests {
    static var messages: [[UInt8]] { vectors.map(\.bytes) }

    @Test(arguments: vectors)
    private func `reads the test vectors of RFC 5769`(_ vector: Vector) throws {
        let message = try STUNMessage(vector.bytes.span)
        let (messageClass, method) = (message.messageClass, message.method)
        let (id, address) = (message.transactionID, message.mappedAddress)
        let isFingerprintValid = message.isFingerprintValid
        #expect(messageClass == vector.messageClass)
        #expect(method == 1)
        #expect(id == transaction)
        #expect(address == vector.address)
        #expect(isFingerprintValid)
        let input = encoded { message.integrityInput(into: &$0) }
        let tag = message.integrityTag.array
        #expect(SHA1.hmac(input, key: password) == tag)
    }

    @Test func `reads the request's attributes`() throws {
        let bytes = vectors[0].bytes
        let message = try STUNMessage(bytes.span)
        let username = message.username.array
        let (priority, controlled) = (message.priority, message.iceControlled)
        let (controlling, useCandidate) = (message.iceControlling, message.useCandidate)
        let isKnown = message.unknownAttributes.isEmpty
        #expect(username == Array("evtj:h6vY".utf8))
        #expect(priority == 0x6e00_01ff)
        #expect(controlled == 0x932f_f9b1_5126_3b36)
        #expect(controlling == nil)
        #expect(!useCandidate)
        #expect(isKnown)
    }

    @Test(arguments: vectors)
    private func `one wrong bit breaks the fingerprint`(_ vector: Vector) {
        for index in 20..<vector.bytes.count {
            var bytes = vector.bytes
            bytes[index] ^= 0x10
            #expect(!isValid(bytes), "byte \(index)")
        }
    }
}

/// Whether `bytes` are a message with a valid fingerprint.
private func isValid(_ bytes: [UInt8]) -> Bool {
    do throws(STUNError) {
        return try STUNMessage(bytes.span).isFingerprintValid
    } catch {
        return false
    }
}

@Suite struct STUNMessageTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        var error: STUNError?
    }

    static func message(length: String, _ attributes: String, type: String = "0001") -> [UInt8] {
        hex(type + length + "2112a442 000000010000000200000003" + attributes)
    }

    static let rows = [
        Row(testDescription: "no attributes", bytes: message(length: "0000", ""), error: nil),
        Row(
            testDescription: "19 bytes",
            bytes: message(length: "0000", "").dropLast(),
            error: .notSTUN
        ),
        Row(
            testDescription: "first bits",
            bytes: message(length: "0000", "", type: "8001"),
            error: .notSTUN
        ),
        Row(
            testDescription: "longer than said",
            bytes: message(length: "0000", "00000000"),
            error: .notSTUN
        ),
        Row(
            testDescription: "length not a multiple of four",
            bytes: message(length: "0002", "0000"),
            error: .notSTUN
        ),
        Row(
            testDescription: "attribute past the end",
            bytes: message(length: "0008", "0006000500000000"),
            error: .attribute
        ),
        Row(
            testDescription: "attribute of 65,535 bytes",
            bytes: message(length: "0008", "0006ffff00000000"),
            error: .attribute
        ),
        Row(
            testDescription: "short PRIORITY",
            bytes: message(length: "0008", "0024000300000000"),
            error: .attribute
        ),
        Row(
            testDescription: "short MESSAGE-INTEGRITY",
            bytes: message(length: "0008", "0008000400000000"),
            error: .attribute
        ),
        Row(
            testDescription: "IPv6 in an IPv4 address",
            bytes: message(length: "000c", "00200008 0002a147e112a643"),
            error: .attribute
        ),
        Row(
            testDescription: "something after FINGERPRINT",
            bytes: message(length: "000c", "8028000400000000 80290000"),
            error: .afterFingerprint
        ),
        Row(
            testDescription: "64 attributes",
            bytes: message(length: "0100", String(repeating: "80220000", count: 64)),
            error: nil
        ),
        Row(
            testDescription: "65 attributes",
            bytes: message(length: "0104", String(repeating: "80220000", count: 65)),
            error: .tooManyAttributes
        ),
    ]

    @Test(arguments: rows)
    func `accepts or refuses`(_ row: Row) {
        var caught: STUNError?
        do { _ = try STUNMessage(row.bytes.span) } catch { caught = error }
        #expect(caught == row.error)
    }

    @Test func `ignores what follows MESSAGE-INTEGRITY`() throws {
        let tag = "00080014" + String(repeating: "00", count: 20)
        let bytes = Self.message(
            length: "0030",
            tag + "00250000" + "0024000400000001" + "8028000400000000" + "7fff0000"
        )
        #expect(throws: STUNError.afterFingerprint) { _ = try STUNMessage(bytes.span) }
        let shorter = Self.message(
            length: "002c",
            tag + "00250000" + "7fff0000" + "0024000400000001" + "80220000"
        )
        let message = try STUNMessage(shorter.span)
        let (useCandidate, priority) = (message.useCandidate, message.priority)
        let (isKnown, offset) = (message.unknownAttributes.isEmpty, message.integrityOffset)
        #expect(!useCandidate)
        #expect(priority == nil)
        #expect(isKnown)
        #expect(offset == 20)
    }

    @Test func `lists up to eight unknown comprehension-required attributes`() throws {
        let attributes = (0..<10).map { "7f0\($0)0000" }.joined() + "ff000000"
        let bytes = Self.message(length: "002c", attributes)
        let message = try STUNMessage(bytes.span)
        let unknown = message.unknownAttributes
        let types = (0..<unknown.count).map { unknown[$0] }
        #expect(types == (0x7f00...0x7f07).map { $0 })
    }

    @Test(
        arguments: zip(
            ["0001", "0011", "0101", "0111"],
            [STUNClass.request, .indication, .success, .failure]
        )
    )
    func `reads the message class`(type: String, expected: STUNClass) throws {
        let bytes = Self.message(length: "0000", "", type: type)
        let message = try STUNMessage(bytes.span)
        let (messageClass, method) = (message.messageClass, message.method)
        #expect(messageClass == expected)
        #expect(method == 1)
    }
}

@Suite struct STUNWriterTests {
    /// Whether a whole message authenticates.
    private func isAuthentic(_ message: STUNMessage) -> Bool {
        let input = encoded { message.integrityInput(into: &$0) }
        let tag = message.integrityTag.array
        return SHA1.hmac(input, key: password) == tag && message.isFingerprintValid
    }

    @Test(arguments: vectors.compactMap(\.address))
    func `a success response has the mapped address`(address: STUNAddress) throws {
        // Other bytes precede it, as in a batch.
        let bytes = encoded(capacity: 3 + STUNWriter.sizeLimit) { output in
            output.append(repeating: 0xee, count: 3)
            STUNWriter.bindingSuccess(
                transaction,
                address: address,
                into: &output,
                integrity: integrity
            )
        }
        let message = try STUNMessage(bytes.span.extracting(droppingFirst: 3))
        let (messageClass, mapped) = (message.messageClass, message.mappedAddress)
        let (id, authentic) = (message.transactionID, isAuthentic(message))
        #expect(messageClass == .success)
        #expect(mapped == address)
        #expect(id == transaction)
        #expect(authentic)
    }

    @Test(arguments: [0, 1, 2, 3, 8])
    func `an error response lists unknown attributes`(count: Int) throws {
        var unknown = UnknownAttributes()
        for index in 0..<count { unknown.append(0x7f00 + UInt16(index)) }
        let bytes = encoded(capacity: STUNWriter.sizeLimit) { output in
            STUNWriter.bindingError(
                transaction,
                code: 420,
                reason: "Unknown Attribute",
                unknown: unknown,
                into: &output,
                integrity: integrity
            )
        }
        let message = try STUNMessage(bytes.span)
        let (messageClass, code) = (message.messageClass, message.errorCode)
        let authentic = isAuthentic(message)
        #expect(messageClass == .failure)
        #expect(code == 420)
        #expect(authentic)
        let list = (0..<count).flatMap { [UInt8(0x7f), UInt8($0)] }
        let attribute = [0x00, 0x0a, 0x00, UInt8(2 * count)] + list
        let isNamed = (0...bytes.count - attribute.count).contains {
            Array(bytes[$0..<$0 + attribute.count]) == attribute
        }
        #expect(isNamed == (count > 0))
    }

    @Test(arguments: ["a:b", "peer:host", String(repeating: "u", count: 513)], [true, false])
    func `a request round-trips`(username: String, useCandidate: Bool) throws {
        let text = Array(username.utf8)
        let bytes = encoded { output in
            STUNWriter.bindingRequest(
                transaction,
                username: text.span,
                priority: 5,
                tieBreaker: 0x0123_4567_89ab_cdef,
                useCandidate: useCandidate,
                into: &output,
                integrity: integrity
            )
        }
        let message = try STUNMessage(bytes.span)
        let (read, priority) = (message.username.array, message.priority)
        let (tieBreaker, nominates) = (message.iceControlling, message.useCandidate)
        let authentic = isAuthentic(message)
        #expect(read == text)
        #expect(priority == 5)
        #expect(tieBreaker == 0x0123_4567_89ab_cdef)
        #expect(nominates == useCandidate)
        #expect(authentic)
    }
}
