internal import COpenSSL
import WorkerInterface

/// AES-256-GCM of one direction of the datagrams between two nodes.
///
/// Safe: it owns OpenSSL's context, and passes it buffers of known lengths.
@safe
final class LinkCipher {
    private let context: OpaquePointer
    private let vector: [UInt8]
    private let isSealing: Bool

    static let tagLength = 16
    private static let vectorLength = 12
    private static let keyLength = 32

    /// Returns `nil` if OpenSSL refuses the keys.
    init?(_ keys: LinkKeys.Direction, seals isSealing: Bool) {
        guard keys.key.count == Self.keyLength, keys.vector.count == Self.vectorLength,
            let context = unsafe EVP_CIPHER_CTX_new()
        else { return nil }
        unsafe self.context = context
        vector = keys.vector
        self.isSealing = isSealing
        let kind = unsafe EVP_aes_256_gcm()
        guard
            unsafe EVP_CipherInit_ex(context, kind, nil, keys.key, nil, isSealing ? 1 : 0) == 1
        else { return nil }
    }

    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    /// Nonce of a datagram: the initial vector with the counter in its low bytes (RFC 8446 §5.3).
    private func nonce(_ counter: UInt64) -> [UInt8] {
        var nonce = vector
        for index in 0..<8 {
            nonce[4 + index] ^= UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64(index)))
        }
        return nonce
    }

    /// Returns the sealed text with its tag; a counter is used once.
    func seal(_ text: [UInt8], counter: UInt64, header: [UInt8]) -> [UInt8]? {
        guard isSealing, var sealed = run(text[...], counter, header) else { return nil }
        var tag = [UInt8](repeating: 0, count: Self.tagLength)
        let isDone = unsafe tag.withUnsafeMutableBytes { bytes in
            unsafe EVP_CIPHER_CTX_ctrl(
                context,
                EVP_CTRL_AEAD_GET_TAG,
                Int32(Self.tagLength),
                bytes.baseAddress
            ) == 1
        }
        guard isDone else { return nil }
        sealed += tag
        return sealed
    }

    /// Returns the text of a sealed one; `nil` if it is not genuine.
    func open(_ sealed: [UInt8], counter: UInt64, header: [UInt8]) -> [UInt8]? {
        guard !isSealing, sealed.count >= Self.tagLength else { return nil }
        var tag = Array(sealed.suffix(Self.tagLength))
        return run(sealed.dropLast(Self.tagLength), counter, header) {
            unsafe tag.withUnsafeMutableBytes { bytes in
                unsafe EVP_CIPHER_CTX_ctrl(
                    context,
                    EVP_CTRL_AEAD_SET_TAG,
                    Int32(Self.tagLength),
                    bytes.baseAddress
                ) == 1
            }
        }
    }

    private func run(
        _ input: ArraySlice<UInt8>,
        _ counter: UInt64,
        _ header: [UInt8],
        expecting tag: () -> Bool = { true }
    ) -> [UInt8]? {
        var length: Int32 = 0
        let begun =
            unsafe EVP_CipherInit_ex(context, nil, nil, nil, nonce(counter), -1) == 1
            && EVP_CipherUpdate(context, nil, &length, header, Int32(header.count)) == 1
        guard begun, tag() else { return nil }
        let text = Array(input)
        var output = [UInt8](repeating: 0, count: text.count)
        var rest: Int32 = 0
        let isDone = unsafe output.withUnsafeMutableBufferPointer { buffer in
            var none: UInt8 = 0
            return unsafe EVP_CipherUpdate(
                context,
                buffer.baseAddress,
                &length,
                text,
                Int32(text.count)
            ) == 1 && EVP_CipherFinal_ex(context, &none, &rest) == 1
        }
        return isDone ? output : nil
    }
}
