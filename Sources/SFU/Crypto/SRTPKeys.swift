internal import COpenSSL
package import WorkerInterface

/// SRTP master keys and salts of both directions, from the DTLS exporter.
///
/// They lie in one heap block that references share. It is wiped when freed and never printed.
@safe
package final class SRTPKeys: @unchecked Sendable, CustomStringConvertible {
    /// Local key and salt, then remote key and salt; written only in the initializer.
    private let material: UnsafeMutableBufferPointer<UInt8>
    private let half: Int

    /// Splits exported keying material (RFC 5764 §4.2): client key, server key, client salt, server
    /// salt.
    ///
    /// `exported` has twice the profile's key and salt length.
    package init(profile: SRTPProfile, exported: Span<UInt8>, role: DTLSRole) {
        half = profile.keyLength + profile.saltLength
        precondition(exported.count == 2 * half)
        unsafe material = .allocate(capacity: 2 * half)
        unsafe material.initialize(repeating: 0)

        let key = profile.keyLength
        let salt = profile.saltLength
        let client = role == .client ? 0 : half
        let server = half - client
        for index in 0..<key {
            unsafe material[client + index] = exported[index]
            unsafe material[server + index] = exported[key + index]
        }
        for index in 0..<salt {
            unsafe material[client + key + index] = exported[2 * key + index]
            unsafe material[server + key + index] = exported[2 * key + salt + index]
        }
    }

    /// Takes keys that an earlier process saved: the local key and salt, then the peer's.
    ///
    /// `saved` has twice the profile's key and salt length.
    init(profile: SRTPProfile, saved: Span<UInt8>) {
        half = profile.keyLength + profile.saltLength
        precondition(saved.count == 2 * half)
        unsafe material = .allocate(capacity: 2 * half)
        unsafe material.initialize(repeating: 0)
        for index in saved.indices { unsafe material[index] = saved[index] }
    }

    deinit {
        unsafe OPENSSL_cleanse(material.baseAddress, material.count)
        unsafe material.deallocate()
    }

    /// Local master key followed by its salt, for packets that we send.
    package var local: Span<UInt8> {
        @_lifetime(borrow self)
        get { slice(0) }
    }

    /// Remote master key followed by its salt, for packets that the peer sends.
    package var remote: Span<UInt8> {
        @_lifetime(borrow self)
        get { slice(half) }
    }

    package var description: String { "SRTPKeys(redacted)" }

    @_lifetime(borrow self)
    private func slice(_ start: Int) -> Span<UInt8> {
        let part = unsafe UnsafeBufferPointer(rebasing: material[start..<start + half])
        return unsafe _overrideLifetime(Span(_unsafeElements: part), borrowing: self)
    }
}
