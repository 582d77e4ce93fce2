#if canImport(CIPSecMB)
    internal import CIPSecMB
    internal import COpenSSL
    internal import RTP

    /// A worker's intel-ipsec-mb: the library's tables of functions for this processor, and the
    /// packets that wait for their HMAC-SHA1 tags.
    ///
    /// SHA-1 is slow for one packet and fast for many side by side (`core-cost --srtp`), so tags
    /// are made together, at the end of a batch.
    @safe
    final class MultiBufferManager {
        let state: UnsafeMutablePointer<MultiBufferState>

        /// Returns `nil` where the library has no memory or fails its own test.
        init?() {
            guard let wide = unsafe alloc_mb_mgr(0) else { return nil }
            var kind = IMB_ARCH_NONE
            unsafe init_mb_mgr_auto(wide, &kind)
            guard unsafe imb_get_errno(wide) == 0,
                unsafe wide.pointee.features & UInt64(IMB_FEATURE_AESNI) != 0
            else {
                unsafe free_mb_mgr(wide)
                return nil
            }
            let narrow = unsafe Self.shaExtensions(wide)
            unsafe state = .allocate(capacity: 1)
            unsafe state.initialize(
                to: MultiBufferState(
                    wide,
                    narrow: narrow ?? wide,
                    // Eight lanes of AVX2 are slower than two of SHA instructions.
                    isWide: kind == IMB_ARCH_AVX512
                )
            )
        }

        deinit {
            unsafe state.pointee.release()
            unsafe state.deinitialize(count: 1)
            unsafe state.deallocate()
        }

        /// Completes the packets that wait for their tags.
        func makeTags() { unsafe state.pointee.makeTags() }

        /// The library's functions with the processor's SHA instructions, if it has any.
        private static func shaExtensions(
            _ wide: UnsafeMutablePointer<IMB_MGR>
        ) -> UnsafeMutablePointer<IMB_MGR>? {
            guard unsafe wide.pointee.features & UInt64(IMB_FEATURE_SHANI) != 0,
                let manager = unsafe alloc_mb_mgr(0)
            else { return nil }
            unsafe init_mb_mgr_sse(manager)
            guard unsafe imb_get_errno(manager) == 0 else {
                unsafe free_mb_mgr(manager)
                return nil
            }
            return unsafe manager
        }

        /// Whether this processor has what the library is fast with.
        static let isSupported = MultiBufferManager() != nil
    }

    /// What a worker's transforms share; it lies on the heap and belongs to one thread.
    @unsafe
    struct MultiBufferState {
        /// The functions with the widest vectors.
        let wide: UnsafeMutablePointer<IMB_MGR>
        /// Those with SHA instructions; the same as `wide` where there are none.
        private let narrow: UnsafeMutablePointer<IMB_MGR>
        /// What the library keeps while it works on one packet with GCM.
        let scratch: UnsafeMutablePointer<gcm_context_data>
        /// A key that is prepared for one packet, and stays until the next, or until
        /// `forgetPreparedKey`.
        let preparedKey: UnsafeMutablePointer<gcm_key_data>
        /// So many bytes in all are hashed faster by `wide` than by `narrow`.
        private let wideFrom: Int

        private let jobs: UnsafeMutablePointer<IMB_JOB>
        private let tags: UnsafeMutablePointer<UInt8>
        /// Where each tag goes.
        private let places: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>>
        private var count = 0
        private var bytes = 0

        init(
            _ wide: UnsafeMutablePointer<IMB_MGR>,
            narrow: UnsafeMutablePointer<IMB_MGR>,
            isWide: Bool
        ) {
            unsafe self.wide = wide
            unsafe self.narrow = narrow
            unsafe wideFrom = isWide ? Self.wideFrom : .max
            unsafe scratch = .allocate(capacity: 1)
            unsafe scratch.initialize(to: gcm_context_data())
            let key = UnsafeMutableRawPointer.allocate(
                byteCount: MemoryLayout<gcm_key_data>.size,
                alignment: 64
            )
            unsafe preparedKey = key.bindMemory(to: gcm_key_data.self, capacity: 1)
            unsafe jobs = .allocate(capacity: Self.capacity)
            unsafe jobs.initialize(repeating: IMB_JOB(), count: Self.capacity)
            unsafe tags = .allocate(capacity: Self.capacity * Self.tagStride)
            unsafe tags.initialize(repeating: 0, count: Self.capacity * Self.tagStride)
            unsafe places = .allocate(capacity: Self.capacity)
        }

        /// To be called when whoever may have prepared it goes.
        func forgetPreparedKey() {
            unsafe OPENSSL_cleanse(preparedKey, MemoryLayout<gcm_key_data>.size)
        }

        func release() {
            unsafe OPENSSL_cleanse(scratch, MemoryLayout<gcm_context_data>.size)
            unsafe scratch.deallocate()
            unsafe forgetPreparedKey()
            unsafe preparedKey.deallocate()
            unsafe jobs.deallocate()
            unsafe tags.deallocate()
            unsafe places.deallocate()
            if unsafe narrow != wide { unsafe free_mb_mgr(narrow) }
            unsafe free_mb_mgr(wide)
        }

        /// Notes that `length` bytes from `start` on get their tag, which replaces what follows
        /// `tagOffset`; key and bytes stay where they are until `makeTags`.
        mutating func wantTag(
            of start: UnsafeMutablePointer<UInt8>,
            length: Int,
            at tagOffset: Int,
            key: UnsafePointer<mb_cm_key>
        ) {
            unsafe mb_cm_prepare_tag(
                jobs + count,
                key,
                start,
                UInt64(length),
                tags + count * Self.tagStride
            )
            unsafe (places + count).initialize(to: start + tagOffset)
            unsafe count += 1
            unsafe bytes += length
            if unsafe count == Self.capacity { unsafe makeTags() }
        }

        /// Puts all tags that are wanted in their places.
        mutating func makeTags() {
            guard unsafe count > 0 else { return }
            let manager = unsafe bytes >= wideFrom ? wide : narrow
            let isDone = unsafe mb_cm_make_tags(manager, jobs, UInt32(count)) == 1
            // The library refuses bad arguments only, and they were ours. What waits for its
            // tag is encrypted already, so nothing leaves in clear whatever happens.
            precondition(isDone, "intel-ipsec-mb refuses to hash")
            for index in unsafe 0..<count {
                let tag = unsafe tags + index * Self.tagStride
                unsafe places[index].update(from: tag, count: SRTPTransform.sha1TagLength)
            }
            unsafe count = 0
            unsafe bytes = 0
        }

        /// The tag of one packet, or `nil` where the library refuses; what waits for others is
        /// left alone.
        func tag(
            of start: UnsafePointer<UInt8>,
            length: Int,
            key: UnsafePointer<mb_cm_key>
        ) -> [12 of UInt8]? {
            var job = unsafe IMB_JOB()
            var tag = [12 of UInt8](repeating: 0)
            var span = tag.mutableSpan
            let isDone = unsafe span.withUnsafeMutableBufferPointer { tag in
                unsafe mb_cm_prepare_tag(&job, key, start, UInt64(length), tag.baseAddress)
                return unsafe mb_cm_make_tags(narrow, &job, 1) == 1
            }
            return isDone ? tag : nil
        }

        /// What a batch holds at most, and what the library takes at once.
        private static let capacity = Int(IMB_MAX_BURST_SIZE)
        private static let tagStride = 16
        /// Five packets of 1,200 bytes, or fifty of 100: there both cost the same.
        private static let wideFrom = 5_000
    }
#endif
