#if canImport(CIPSecMB)
    internal import CIPSecMB
    internal import COpenSSL
    internal import RTP

    /// One of a session's four ciphers with its session keys: RTP or RTCP, in or out.
    ///
    /// It encrypts and authenticates single packets of known index, and keeps no state between
    /// them.
    @safe
    struct SRTPTransform: ~Copyable {
        /// Owner of the memory behind `state`; not accessed per packet.
        private let owner: MultiBufferManager
        let state: UnsafeMutablePointer<MultiBufferState>
        /// Pointer to a `gcm_key_data` or `mb_cm_key`, or to the raw key if not `isPrepared`.
        private(set) var key: UnsafeMutableRawPointer
        private(set) var keySize: Int
        /// Whether the key is expanded; an expanded GCM key has a kilobyte, and expansion is fast.
        private var isPrepared: Bool
        let isAEAD: Bool
        /// 1 for AES-256, otherwise 0.
        private let wide: Int32
        let tagLength: Int
        /// Session salt in four words, left-aligned.
        private let salt: SIMD4<UInt32>
        #if DEBUG || SFUD_INDEX_GUARD
            var sent: IndexReuseDetector?
        #endif

        /// Creates the cipher; `authentication` has 20 bytes for HMAC-SHA1 and none for GCM.
        ///
        /// With `rare`, a GCM key is expanded for each packet instead of once.
        init(
            profile: SRTPProfile,
            encryption: Span<UInt8>,
            authentication: Span<UInt8>,
            salt: Span<UInt8>,
            manager: MultiBufferManager,
            rare: Bool = false
        ) {
            precondition(encryption.count == profile.keyLength)
            precondition(salt.count == profile.saltLength)
            precondition(authentication.count == (profile.isAEAD ? 0 : Digest.sha1Length))
            isAEAD = profile.isAEAD
            wide = profile == .aeadAes256Gcm ? 1 : 0
            tagLength = profile.rtpOverhead
            self.salt = Self.words(salt)
            owner = manager
            unsafe state = manager.state
            isPrepared = !profile.isAEAD
            keySize = profile.isAEAD ? profile.keyLength : MemoryLayout<mb_cm_key>.size
            unsafe key = Self.allocate(keySize)
            if isAEAD {
                for index in encryption.indices {
                    unsafe key.storeBytes(
                        of: encryption[index],
                        toByteOffset: index,
                        as: UInt8.self
                    )
                }
            } else {
                unsafe encryption.withUnsafeBufferPointer { encryption in
                    unsafe authentication.withUnsafeBufferPointer { authentication in
                        unsafe mb_cm_prepare(
                            state.pointee.wide,
                            encryption.baseAddress,
                            authentication.baseAddress,
                            key.assumingMemoryBound(to: mb_cm_key.self)
                        )
                    }
                }
            }
            if !rare { prepare() }
        }

        deinit {
            // Packets may still await a tag that is computed with this key.
            unsafe state.pointee.computeTags()
            if !isPrepared { unsafe state.pointee.forgetPreparedKey() }
            unsafe OPENSSL_cleanse(key, keySize)
            unsafe key.deallocate()
        }

        /// Expands the key once for all later packets.
        mutating func prepare() {
            guard !isPrepared else { return }
            let size = MemoryLayout<gcm_key_data>.size
            let prepared = unsafe Self.allocate(size)
            unsafe mb_gcm_prepare(
                state.pointee.wide,
                wide,
                key,
                prepared.assumingMemoryBound(to: gcm_key_data.self)
            )
            unsafe OPENSSL_cleanse(key, keySize)
            unsafe key.deallocate()
            unsafe key = prepared
            keySize = size
            isPrepared = true
        }

        /// Allocates with the 64-byte alignment that the library's wide loads need.
        private static func allocate(_ size: Int) -> UnsafeMutableRawPointer {
            .allocate(byteCount: size, alignment: 64)
        }

        /// Encrypts as `SRTPSession.protectRTP` does, for a known SSRC; returns `false` if the
        /// library refuses.
        func protectRTP(
            _ output: inout MutableSpan<UInt8>,
            headerLength: Int,
            prefixLength: Int,
            rest: Span<UInt8>,
            ssrc: UInt32,
            index: UInt64
        ) -> Bool {
            let length = headerLength + prefixLength + rest.count
            precondition(headerLength >= 0 && prefixLength >= 0)
            precondition(length + tagLength <= output.count)
            #if DEBUG || SFUD_INDEX_GUARD
                sent?.note(output.span, headerLength + prefixLength, rest, index: index)
            #endif
            guard isAEAD else {
                output.copy(rest, at: headerLength + prefixLength)
                return beginCounterMode(
                    &output,
                    headerLength: headerLength,
                    length: length,
                    ssrc: ssrc,
                    index: index
                )
            }
            unsafe output.withUnsafeMutableBufferPointer { output in
                unsafe rest.withUnsafeBufferPointer { rest in
                    guard let header = output.baseAddress else { return }
                    let payload = unsafe header + headerLength
                    let source = unsafe rest.baseAddress ?? UnsafePointer(payload)
                    unsafe withVector(ssrc, index) { vector in
                        if prefixLength == 0 {
                            unsafe mb_gcm_encrypt(
                                state.pointee.wide,
                                wide,
                                gcmKey,
                                state.pointee.scratch,
                                payload,
                                source,
                                UInt64(rest.count),
                                vector,
                                header,
                                UInt64(headerLength),
                                payload + rest.count
                            )
                        } else {
                            unsafe mb_gcm_encrypt_parts(
                                state.pointee.wide,
                                wide,
                                gcmKey,
                                state.pointee.scratch,
                                payload,
                                UInt64(prefixLength),
                                source,
                                UInt64(rest.count),
                                vector,
                                header,
                                UInt64(headerLength)
                            )
                        }
                    }
                }
            }
            return true
        }

        /// Decrypts `packet` into `output`; returns `false` if its tag is wrong.
        func unprotectRTP(
            _ packet: Span<UInt8>,
            headerLength: Int,
            ssrc: UInt32,
            index: UInt64,
            into output: inout MutableSpan<UInt8>
        ) -> Bool {
            let end = packet.count - tagLength
            precondition(headerLength >= 0 && headerLength <= end)
            precondition(output.count >= packet.count)
            guard isAEAD else {
                output.copy(packet.extracting(0..<end), at: 0)
                output.put(UInt32(truncatingIfNeeded: index >> 16), at: end)
                let tag = packet.extracting(end..<packet.count)
                return isTag(tag, of: output.span.extracting(0..<end + 4))
                    && cipher(&output, headerLength..<end, ssrc: ssrc, index: index)
            }
            output.copy(packet.extracting(0..<headerLength), at: 0)
            return decrypt(
                packet.extracting(headerLength..<end),
                tag: packet.extracting(end..<packet.count),
                aad: packet.extracting(0..<headerLength),
                ssrc: ssrc,
                index: index,
                into: &output,
                at: headerLength
            )
        }

        /// Encrypts as `SRTPSession.protectRTCP` does, for a known index of 31 bits.
        func protectRTCP(
            _ buffer: inout MutableSpan<UInt8>,
            length: Int,
            ssrc: UInt32,
            index: UInt32
        ) -> Bool {
            precondition(length >= 8 && length + tagLength + 4 <= buffer.count)
            let word = 0x8000_0000 | index
            guard isAEAD else {
                guard cipher(&buffer, 8..<length, ssrc: ssrc, index: UInt64(index)) else {
                    return false
                }
                buffer.put(word, at: length)
                guard let tag = counterModeTag(buffer.span.extracting(0..<length + 4)) else {
                    return false
                }
                for place in 0..<tagLength { buffer[length + 4 + place] = tag[place] }
                return true
            }
            buffer.put(word, at: length + tagLength)
            let aad = Self.rtcpAAD(buffer.span, word)
            unsafe buffer.withUnsafeMutableBufferPointer { buffer in
                guard let header = buffer.baseAddress else { return }
                unsafe aad.span.withUnsafeBufferPointer { aad in
                    unsafe withVector(ssrc, UInt64(index)) { vector in
                        unsafe mb_gcm_encrypt(
                            state.pointee.wide,
                            wide,
                            gcmKey,
                            state.pointee.scratch,
                            header + 8,
                            header + 8,
                            UInt64(length - 8),
                            vector,
                            aad.baseAddress,
                            UInt64(aad.count),
                            header + length
                        )
                    }
                }
            }
            return true
        }

        /// Decrypts as `unprotectRTP` does, for the index in the packet.
        func unprotectRTCP(
            _ packet: Span<UInt8>,
            ssrc: UInt32,
            index: UInt32,
            into output: inout MutableSpan<UInt8>
        ) -> Bool {
            let end = packet.count - tagLength - 4
            precondition(end >= 8 && output.count >= packet.count)
            guard isAEAD else {
                output.copy(packet.extracting(0..<end), at: 0)
                let tag = packet.extracting(end + 4..<packet.count)
                return isTag(tag, of: packet.extracting(0..<end + 4))
                    && cipher(&output, 8..<end, ssrc: ssrc, index: UInt64(index))
            }
            output.copy(packet.extracting(0..<8), at: 0)
            let aad = Self.rtcpAAD(packet, 0x8000_0000 | index)
            return decrypt(
                packet.extracting(8..<end),
                tag: packet.extracting(end..<end + tagLength),
                aad: aad.span,
                ssrc: ssrc,
                index: UInt64(index),
                into: &output,
                at: 8
            )
        }
    }

    extension SRTPTransform {
        private var gcmKey: UnsafePointer<gcm_key_data> {
            if isPrepared {
                return unsafe UnsafePointer(key.assumingMemoryBound(to: gcm_key_data.self))
            }
            let prepared = unsafe state.pointee.preparedKey
            unsafe mb_gcm_prepare(state.pointee.wide, wide, key, prepared)
            return unsafe UnsafePointer(prepared)
        }

        private func decrypt(
            _ input: Span<UInt8>,
            tag: Span<UInt8>,
            aad: Span<UInt8>,
            ssrc: UInt32,
            index: UInt64,
            into output: inout MutableSpan<UInt8>,
            at offset: Int
        ) -> Bool {
            precondition(offset + input.count <= output.count)
            var expected = [16 of UInt8](repeating: 0)
            var expectedSpan = expected.mutableSpan
            unsafe output.withUnsafeMutableBufferPointer { output in
                unsafe input.withUnsafeBufferPointer { input in
                    unsafe aad.withUnsafeBufferPointer { aad in
                        unsafe expectedSpan.withUnsafeMutableBufferPointer { expected in
                            guard let base = output.baseAddress else { return }
                            let target = unsafe base + offset
                            let source = unsafe input.baseAddress ?? UnsafePointer(target)
                            unsafe withVector(ssrc, index) { vector in
                                unsafe mb_gcm_decrypt(
                                    state.pointee.wide,
                                    wide,
                                    gcmKey,
                                    state.pointee.scratch,
                                    target,
                                    source,
                                    UInt64(input.count),
                                    vector,
                                    aad.baseAddress,
                                    UInt64(aad.count),
                                    expected.baseAddress
                                )
                            }
                        }
                    }
                }
            }
            return Digest.equal(expected.span, tag)
        }

        /// Passes the initialization vector to `body`.
        ///
        /// It has 12 bytes by RFC 7714 §8.1 and §9.1, or 16 by RFC 3711 §4.1.1, where the caller
        /// shifts the index left by 16 bits.
        @inline(always)
        func withVector<Result>(
            _ ssrc: UInt32,
            _ index: UInt64,
            _ body: (UnsafePointer<UInt8>) -> Result
        ) -> Result {
            let high = UInt32(truncatingIfNeeded: index >> 32)
            let low = UInt32(truncatingIfNeeded: index)
            let words: SIMD4<UInt32> =
                isAEAD
                ? SIMD4(ssrc >> 16, ssrc << 16 | high, low, 0) : SIMD4(0, ssrc, high, low)
            var mixed = words ^ salt
            for word in 0..<4 { mixed[word] = mixed[word].bigEndian }
            return unsafe withUnsafePointer(to: mixed) { mixed in
                unsafe body(UnsafeRawPointer(mixed).assumingMemoryBound(to: UInt8.self))
            }
        }

        private static func words(_ salt: Span<UInt8>) -> SIMD4<UInt32> {
            var words = SIMD4<UInt32>()
            for index in salt.indices {
                words[index / 4] |= UInt32(salt[index]) << UInt32(24 - 8 * (index % 4))
            }
            return words
        }

        /// Returns the additional authenticated data of an RTCP packet (RFC 7714 §9.2).
        private static func rtcpAAD(_ packet: Span<UInt8>, _ word: UInt32) -> [12 of UInt8] {
            var aad = [12 of UInt8](repeating: 0)
            for index in 0..<8 { aad[index] = packet[index] }
            for index in 0..<4 {
                aad[8 + index] = UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * index))
            }
            return aad
        }
    }
#endif
