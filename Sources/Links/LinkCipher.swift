internal import COpenSSL
import WorkerInterface

/// AES-256-GCM of one direction of the datagrams between two nodes.
///
/// Safe: it owns OpenSSL's context, and passes it buffers of known lengths.
@safe
final class LinkCipher {
    private let context: OpaquePointer
    private let vector: [UInt8]
    /// The last nonce; its storage is kept.
    private var nonce: [UInt8]
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
        nonce = keys.vector
        self.isSealing = isSealing
        let kind = unsafe EVP_aes_256_gcm()
        guard
            unsafe EVP_CipherInit_ex(context, kind, nil, keys.key, nil, isSealing ? 1 : 0) == 1
        else { return nil }
    }

    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    /// Sets the nonce of a datagram: the initial vector with the counter in its low bytes
    /// (RFC 8446 §5.3).
    private func setNonce(_ counter: UInt64) {
        for index in 0..<8 {
            let byte = UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64(index)))
            nonce[4 + index] = vector[4 + index] ^ byte
        }
    }

    /// Returns a datagram: the header as it is, the sealed text, and the tag.
    ///
    /// A counter is used once.
    func seal(_ text: [UInt8], counter: UInt64, after header: [UInt8]) -> [UInt8]? {
        guard isSealing, begin(counter, header[...]) else { return nil }
        let end = header.count + text.count
        var isDone = false
        let datagram = unsafe [UInt8](unsafeUninitializedCapacity: end + Self.tagLength) {
            buffer,
            count in
            guard let start = buffer.baseAddress else { return }
            unsafe start.update(from: header, count: header.count)
            isDone =
                unsafe run(text[...], into: start + header.count)
                && EVP_CIPHER_CTX_ctrl(
                    context,
                    EVP_CTRL_AEAD_GET_TAG,
                    Int32(Self.tagLength),
                    start + end
                ) == 1
            count = isDone ? end + Self.tagLength : 0
        }
        return isDone ? datagram : nil
    }

    /// Returns the text of a datagram; `nil` if it is not genuine.
    func open(_ datagram: [UInt8], counter: UInt64) -> [UInt8]? {
        guard !isSealing, datagram.count >= LinkDatagram.overhead else { return nil }
        let end = datagram.count - Self.tagLength
        var tag = Array(datagram[end...])
        guard begin(counter, datagram[..<LinkDatagram.headerLength]), set(&tag) else { return nil }
        let sealed = datagram[LinkDatagram.headerLength..<end]
        var isDone = false
        let text = unsafe [UInt8](unsafeUninitializedCapacity: max(sealed.count, 1)) {
            buffer,
            count in
            guard let start = buffer.baseAddress else { return }
            isDone = unsafe run(sealed, into: start)
            count = isDone ? sealed.count : 0
        }
        return isDone ? text : nil
    }

    private func set(_ tag: inout [UInt8]) -> Bool {
        unsafe tag.withUnsafeMutableBytes { bytes in
            unsafe EVP_CIPHER_CTX_ctrl(
                context,
                EVP_CTRL_AEAD_SET_TAG,
                Int32(Self.tagLength),
                bytes.baseAddress
            ) == 1
        }
    }

    private func begin(_ counter: UInt64, _ header: ArraySlice<UInt8>) -> Bool {
        setNonce(counter)
        var length: Int32 = 0
        return unsafe header.withUnsafeBufferPointer { header in
            unsafe EVP_CipherInit_ex(context, nil, nil, nil, nonce, -1) == 1
                && EVP_CipherUpdate(
                    context,
                    nil,
                    &length,
                    header.baseAddress,
                    Int32(header.count)
                ) == 1
        }
    }

    /// Seals or opens `input` into as many bytes at `output`.
    private func run(_ input: ArraySlice<UInt8>, into output: UnsafeMutablePointer<UInt8>) -> Bool {
        var length: Int32 = 0
        var rest: Int32 = 0
        var none: UInt8 = 0
        return unsafe input.withUnsafeBufferPointer { input in
            unsafe EVP_CipherUpdate(
                context,
                output,
                &length,
                input.baseAddress,
                Int32(input.count)
            ) == 1 && EVP_CipherFinal_ex(context, &none, &rest) == 1
        }
    }
}
