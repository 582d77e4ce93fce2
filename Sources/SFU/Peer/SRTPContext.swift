#if canImport(CIPSecMB)
    internal import CIPSecMB
#endif

/// Which library does the encryption.
package enum SRTPEngine: String, Sendable, CaseIterable {
    /// Portable, and the one that the other is held against.
    case libsrtp2
    /// Fast, on x86-64 only.
    case ipsecMB = "ipsec-mb"

    /// The engines that this build has and this processor can run, the fastest first.
    package static let available: [Self] = {
        #if canImport(CIPSecMB)
            if MultiBufferManager.isSupported { return [.ipsecMB, .libsrtp2] }
        #endif
        return [.libsrtp2]
    }()

    package static var best: Self { available.first ?? .libsrtp2 }
}

/// What the SRTP sessions of one worker share: its engine.
///
/// A worker makes one, keeps it on its own thread, and makes its sessions with it.
package final class SRTPContext {
    package let engine: SRTPEngine
    #if canImport(CIPSecMB)
        let manager: MultiBufferManager?
    #endif
    private let refusesReuse: Bool

    /// Makes the context of one thread.
    ///
    /// - Parameters:
    ///   - engine: One of those `available`; without memory libsrtp2 takes its place.
    ///   - refusesReuse: Whether debug builds and the simulator trap where a session encrypts a
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
        /// The record of one outgoing cipher, where there has to be one.
        func sentIndexes() -> SentIndexes? { refusesReuse ? SentIndexes() : nil }
    #endif

    /// Completes every packet whose encryption was begun, by whichever session.
    ///
    /// Call it before any of them leaves; it costs nothing where there is none.
    package func finish() {
        #if canImport(CIPSecMB)
            manager?.makeTags()
        #endif
    }
}
