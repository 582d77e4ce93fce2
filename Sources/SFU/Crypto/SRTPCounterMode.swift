#if canImport(CIPSecMB)
    internal import CIPSecMB
    internal import RTP

    /// AES counter mode with HMAC-SHA1 tags (RFC 3711 §4.1.1 and §4.2.1).
    extension SRTPTransform {
        /// Length of the tag that is sent, in bytes.
        static let sha1TagLength = 10

        /// Encrypts the packet now and queues its tag for `MultiBufferState.computeTags`.
        ///
        /// `bytes` holds the whole plaintext packet in its first `length` bytes, and has room for
        /// the tag. Returns `false` if the library refuses.
        func beginCounterMode(
            _ bytes: inout MutableSpan<UInt8>,
            headerLength: Int,
            length: Int,
            ssrc: UInt32,
            index: UInt64
        ) -> Bool {
            guard cipher(&bytes, headerLength..<length, ssrc: ssrc, index: index) else {
                return false
            }
            // The roll-over counter is hashed too, and lies where the tag will be written.
            bytes.put(UInt32(truncatingIfNeeded: index >> 16), at: length)
            unsafe bytes.withUnsafeMutableBufferPointer { bytes in
                guard let start = bytes.baseAddress else { return }
                unsafe state.pointee.queueTag(
                    of: start,
                    length: length + 4,
                    at: length,
                    key: counterModeKey
                )
            }
            return true
        }

        /// Returns the untruncated tag of `bytes`, of which the first `sha1TagLength` bytes are
        /// sent.
        ///
        /// Returns `nil` if the library refuses.
        func counterModeTag(_ bytes: Span<UInt8>) -> [12 of UInt8]? {
            unsafe bytes.withUnsafeBufferPointer { bytes in
                guard let start = bytes.baseAddress else { return nil }
                return unsafe state.pointee.tag(
                    of: start,
                    length: bytes.count,
                    key: counterModeKey
                )
            }
        }

        /// Returns whether `tag` is the correct tag of `bytes`.
        func isTag(_ tag: Span<UInt8>, of bytes: Span<UInt8>) -> Bool {
            guard let expected = counterModeTag(bytes) else { return false }
            return Digest.equal(tag, expected.span.extracting(0..<tagLength))
        }

        /// Encrypts or decrypts a range in place; returns `false` if the library refuses.
        func cipher(
            _ bytes: inout MutableSpan<UInt8>,
            _ range: Range<Int>,
            ssrc: UInt32,
            index: UInt64
        ) -> Bool {
            precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
            // The library refuses empty jobs.
            guard !range.isEmpty else { return true }
            return unsafe bytes.withUnsafeMutableBufferPointer { bytes in
                guard let base = bytes.baseAddress else { return false }
                let start = unsafe base + range.lowerBound
                return unsafe withVector(ssrc, index << 16) { vector in
                    unsafe mb_cm_cipher(
                        state.pointee.wide,
                        counterModeKey,
                        start,
                        start,
                        UInt64(range.count),
                        vector
                    ) == 1
                }
            }
        }

        private var counterModeKey: UnsafePointer<mb_cm_key> {
            unsafe UnsafePointer(key.assumingMemoryBound(to: mb_cm_key.self))
        }
    }
#endif
