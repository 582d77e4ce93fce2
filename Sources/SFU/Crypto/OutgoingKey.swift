import RTP

#if canImport(CIPSecMB)
    /// A session's cipher for outgoing RTP, at a stable address.
    @safe
    struct OutgoingCipher: ~Copyable {
        private let transform: UnsafeMutablePointer<SRTPTransform>

        init(_ transform: consuming SRTPTransform, _ context: SRTPContext) {
            unsafe self.transform = .allocate(capacity: 1)
            unsafe self.transform.initialize(to: transform)
            #if DEBUG || SFUD_INDEX_GUARD
                unsafe self.transform.pointee.sent = context.indexReuseDetector()
            #endif
        }

        deinit {
            unsafe transform.deinitialize(count: 1)
            unsafe transform.deallocate()
        }

        /// Direct handle to this cipher, valid as long as the cipher.
        var key: OutgoingKey {
            unsafe OutgoingKey(
                transform: transform,
                start: UnsafeRawPointer(transform.pointee.key),
                byteCount: Int32(transform.pointee.keySize)
            )
        }
    }

    /// Direct handle to a session's outgoing RTP key, for fan-out to many subscribers.
    ///
    /// It does not keep the session alive; its holder must drop it when the session ends.
    @safe
    struct OutgoingKey: BitwiseCopyable {
        fileprivate let transform: UnsafeMutablePointer<SRTPTransform>
        /// Address of the expanded key, so that `prefetch` needs no memory access.
        fileprivate let start: UnsafeRawPointer
        fileprivate let byteCount: Int32

        /// Prefetches the key for a packet that will be protected soon.
        func prefetch() {
            unsafe Prefetch.read(transform, byteCount: MemoryLayout<SRTPTransform>.size)
            unsafe Prefetch.read(start, byteCount: Int(byteCount))
        }

        /// Encrypts as `SRTPSession.protectRTP` does.
        @_lifetime(output: copy output)
        func protectRTP(
            _ output: inout MutableSpan<UInt8>,
            headerLength: Int,
            prefixLength: Int,
            rest: Span<UInt8>,
            index: UInt64
        ) throws(SRTPError) -> Int {
            let length = headerLength + prefixLength + rest.count
            try SRTPSession.check(
                output.span,
                headerLength: headerLength,
                prefixLength: prefixLength,
                index: index
            )
            let isDone = unsafe transform.pointee.protectRTP(
                &output,
                headerLength: headerLength,
                prefixLength: prefixLength,
                rest: rest,
                ssrc: output.span.u32(at: 8),
                index: index
            )
            guard isDone else { throw .unavailable }
            return unsafe length + transform.pointee.tagLength
        }
    }
#else
    /// Placeholder without intel-ipsec-mb, which alone offers a direct handle.
    struct OutgoingKey: BitwiseCopyable {
        private init() {}

        func prefetch() {}

        @_lifetime(output: copy output)
        func protectRTP(
            _ output: inout MutableSpan<UInt8>,
            headerLength: Int,
            prefixLength: Int,
            rest: Span<UInt8>,
            index: UInt64
        ) throws(SRTPError) -> Int { throw .unavailable }
    }
#endif
