#if canImport(CIPSecMB)
    internal import CIPSecMB
#endif

/// SRTP encryption library.
package enum SRTPEngine: String, Sendable, CaseIterable {
    /// Portable, and the reference for the other engine.
    case libsrtp2
    /// Fast, on x86-64 only.
    case ipsecMB = "ipsec-mb"

    /// Engines that this build has and this processor supports, fastest first.
    package static let available: [Self] = {
        #if canImport(CIPSecMB)
            if MultiBufferManager.isSupported { return [.ipsecMB, .libsrtp2] }
        #endif
        return [.libsrtp2]
    }()

    package static var best: Self { available.first ?? .libsrtp2 }
}

/// SRTP engine that the sessions of one worker share.
///
/// A worker creates one, keeps it on its own thread, and creates its sessions with it.
package final class SRTPContext {
    package let engine: SRTPEngine
    #if canImport(CIPSecMB)
        let manager: MultiBufferManager?
    #endif
    private let refusesReuse: Bool

    /// Creates the context of one thread.
    ///
    /// - Parameters:
    ///   - engine: One of those `available`; libsrtp2 replaces it if there is no memory.
    ///   - refusesReuse: Whether debug builds and the simulator trap if a session encrypts a
    ///     second, different packet under one index. Hostile peers in tests do that on purpose.
    package init(engine: SRTPEngine = .best, refusesReuse: Bool = false) {
        self.refusesReuse = refusesReuse
        precondition(SRTPEngine.available.contains(engine))
        #if canImport(CIPSecMB)
            manager = engine == .ipsecMB ? MultiBufferManager() : nil
            self.engine = manager == nil ? .libsrtp2 : .ipsecMB
        #else
            self.engine = .libsrtp2
        #endif
    }

    #if DEBUG || SFUD_INDEX_GUARD
        /// Creates the index-reuse detector of one outgoing cipher, if enabled.
        func indexReuseDetector() -> IndexReuseDetector? {
            refusesReuse ? IndexReuseDetector() : nil
        }
    #endif

    /// Completes all packets whose encryption was begun, in any session.
    ///
    /// Call it before any of them is sent; it costs nothing if there are none.
    package func finish() {
        #if canImport(CIPSecMB)
            manager?.computeTags()
        #endif
    }
}
