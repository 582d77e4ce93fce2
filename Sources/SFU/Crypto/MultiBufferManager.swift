#if canImport(CIPSecMB)
    internal import CIPSecMB
    internal import COpenSSL
    internal import RTP

    /// A worker's intel-ipsec-mb state: function tables for this processor, and packets that await
    /// HMAC-SHA1 tags.
    ///
    /// SHA-1 is slow for one packet and fast for many in parallel (`core-cost --srtp`), so tags are
    /// computed together at the end of a batch.
    @safe
    final class MultiBufferManager {
        let state: UnsafeMutablePointer<MultiBufferState>

        /// Creates the state, or returns `nil` if the library has no memory or fails its self-test.
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
                    // Eight AVX2 lanes are slower than two with SHA instructions.
                    isWide: kind == IMB_ARCH_AVX512
                )
            )
        }

        deinit {
            unsafe state.pointee.release()
            unsafe state.deinitialize(count: 1)
            unsafe state.deallocate()
        }

        /// Computes the tags of all packets that await one.
        func computeTags() { unsafe state.pointee.computeTags() }

        /// Returns the library's functions that use SHA instructions, if the processor has those.
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

        /// Whether this processor has the instructions that the library needs.
        static let isSupported = MultiBufferManager() != nil
    }

    /// State that a worker's transforms share, on the heap and used by one thread.
    @unsafe
    struct MultiBufferState {
        /// Functions with the widest vectors.
        let wide: UnsafeMutablePointer<IMB_MGR>
        /// Functions with SHA instructions; the same as `wide` if the processor has none.
        private let narrow: UnsafeMutablePointer<IMB_MGR>
        /// GCM context of the packet in progress.
        let scratch: UnsafeMutablePointer<gcm_context_data>
        /// Key expanded for one packet, kept until the next one or `forgetPreparedKey`.
        let preparedKey: UnsafeMutablePointer<gcm_key_data>
        /// Total number of bytes from which `wide` hashes faster than `narrow`.
        private let wideFrom: Int

        private let jobs: UnsafeMutablePointer<IMB_JOB>
        private let tags: UnsafeMutablePointer<UInt8>
        /// Destination of each tag.
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

        /// Wipes the key in `preparedKey`.
        ///
        /// Call it when a transform that may have expanded its key there is destroyed.
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

        /// Queues a tag for `length` bytes from `start`, to be written at `tagOffset`.
        ///
        /// Key and bytes must not move or change until `computeTags`.
        mutating func queueTag(
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
            if unsafe count == Self.capacity { unsafe computeTags() }
        }

        /// Computes all queued tags and writes them to their destinations.
        mutating func computeTags() {
            guard unsafe count > 0 else { return }
            let manager = unsafe bytes >= wideFrom ? wide : narrow
            let isDone = unsafe mb_cm_make_tags(manager, jobs, UInt32(count)) == 1
            // The library refuses only bad arguments, and these are ours. The queued packets are
            // already encrypted, so nothing is ever sent as plaintext.
            precondition(isDone, "intel-ipsec-mb refuses to hash")
            for index in unsafe 0..<count {
                let tag = unsafe tags + index * Self.tagStride
                unsafe places[index].update(from: tag, count: SRTPTransform.sha1TagLength)
            }
            unsafe count = 0
            unsafe bytes = 0
        }

        /// Computes the tag of one packet apart from the queue; returns `nil` if the library
        /// refuses.
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

        /// Maximum number of queued tags, which is also the library's maximum for one call.
        private static let capacity = Int(IMB_MAX_BURST_SIZE)
        private static let tagStride = 16
        /// Break-even point of both function sets: five packets of 1,200 bytes, or fifty of 100.
        private static let wideFrom = 5_000
    }
#endif
