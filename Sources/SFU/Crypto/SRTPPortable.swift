internal import CSRTP
import RTP

/// SRTP session by libsrtp2: portable, and the reference for the other engine.
///
/// libsrtp2 keeps roll-over counters and replay windows itself. This type adds a limit on incoming
/// streams, which libsrtp2 lacks, and the newest index of each outgoing stream, because the caller
/// assigns indexes.
@safe
struct PortableSRTP: ~Copyable {
    private let inbound: srtp_t
    private let outbound: srtp_t
    private let maxStreams: Int
    private var incoming: [IncomingStream] = []
    private var outgoing: [OutgoingStream] = []
    /// SRTCP indexes used so far by SSRC, and the one before the first.
    private var controlIndexes: [UInt32: UInt32] = [:]
    private var firstControlIndex: UInt32 = 0
    /// Copy of the indexes that outlives the process.
    var saved: SavedPlace?
    #if DEBUG || SFUD_INDEX_GUARD
        var sent: IndexReuseDetector?
    #endif

    private struct IncomingStream {
        var ssrc: UInt32
        /// Number of consecutive RTP packets that were refused.
        var refused: UInt32 = 0
        /// Highest authenticated RTP index.
        var newest: UInt64 = 0
        /// Index up to which an earlier process may have accepted packets.
        var floor: UInt64?
    }

    private struct OutgoingStream {
        var ssrc: UInt32
        /// Highest index protected so far.
        var newest: UInt64
    }

    init(profile: SRTPProfile, keys: SRTPKeys, maxStreams: Int) throws(SRTPError) {
        let pair = unsafe try Self.createBoth(profile, keys)
        unsafe inbound = pair.inbound
        unsafe outbound = pair.outbound
        self.maxStreams = maxStreams
    }

    deinit {
        _ = unsafe srtp_dealloc(inbound)
        _ = unsafe srtp_dealloc(outbound)
    }

    mutating func unprotectRTP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        let ssrc = packet.u32(at: 8)
        let place = try admit(ssrc)
        do throws(SRTPError) {
            let length = try open(packet, into: &output)
            try accept(packet, at: place ?? append(ssrc))
            return length
        } catch {
            guard let place, search(at: place) else { throw error }
            // The next packet is checked with the counter that libsrtp2 estimates, whatever the
            // result.
            defer { _ = unsafe srtp_set_stream_roc(inbound, ssrc, 0) }
            let length = try open(packet, into: &output)
            try accept(packet, at: place)
            return length
        }
    }

    private mutating func append(_ ssrc: UInt32) -> Int {
        incoming.append(IncomingStream(ssrc: ssrc))
        saved?.noteCount(incoming.count)
        return incoming.count - 1
    }

    /// Records an authenticated RTP packet; throws `replay` if an earlier process may have accepted
    /// it.
    private mutating func accept(_ packet: Span<UInt8>, at place: Int) throws(SRTPError) {
        incoming[place].refused = 0
        var counter: UInt32 = 0
        _ = unsafe srtp_get_stream_roc(inbound, incoming[place].ssrc, &counter)
        var index = UInt64(counter) << 16 | UInt64(packet.u16(at: 2))
        // libsrtp2 tells the newest packet's counter; a late packet may be from the cycle before.
        if index > incoming[place].newest + 1 << 15, counter > 0, incoming[place].newest > 0 {
            index -= 1 << 16
        }
        guard index > incoming[place].floor ?? 0 || incoming[place].floor == nil else {
            throw .replay
        }
        guard index > incoming[place].newest else { return }
        incoming[place].newest = index
        save(place)
    }

    private func save(_ place: Int) {
        let stream = incoming[place]
        saved?.note(SavedTransport.Stream(rtpNewest: stream.newest, ssrc: stream.ssrc), at: place)
    }

    /// Continues the indexes of an earlier process with the same keys.
    ///
    /// Unlike the other engine, this one may accept an old RTCP packet once more: libsrtp2's
    /// window for RTCP cannot be set. Throws `exhausted` if an earlier process has sent so many
    /// RTCP packets that passing over their indexes would delay media.
    mutating func resume(
        _ streams: [SavedTransport.Stream],
        rtcpHighest: UInt32,
        _ profile: SRTPProfile,
        _ keys: SRTPKeys
    ) throws(SRTPError) {
        guard rtcpHighest <= Self.passedAtMost else { throw .exhausted }
        firstControlIndex = rtcpHighest
        saved?.noteRTCPOut(rtcpHighest)
        for stream in streams where incoming.count < maxStreams {
            let status = unsafe Self.withPolicy(profile, keys.remote, ssrc_specific, stream.ssrc) {
                policy in unsafe srtp_add_stream(inbound, &policy)
            }
            try Self.check(status)
            let counter = UInt32(truncatingIfNeeded: stream.rtpNewest >> 16)
            try Self.check(unsafe srtp_set_stream_roc(inbound, stream.ssrc, counter))
            let place = append(stream.ssrc)
            incoming[place].newest = stream.rtpNewest
            incoming[place].floor = stream.rtpNewest
            save(place)
        }
    }

    /// SRTCP indexes that are passed over at most: some milliseconds of work, for each transport.
    private static let passedAtMost: UInt32 = 1 << 10

    private func open(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        output.copy(packet, at: 0)
        var length = Int32(packet.count)
        let status = unsafe output.withUnsafeMutableBufferPointer { bytes in
            unsafe srtp_unprotect(inbound, bytes.baseAddress, &length)
        }
        try Self.check(status)
        return Int(length)
    }

    mutating func unprotectRTCP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        let place = try admit(packet.u32(at: 4))
        output.copy(packet, at: 0)
        var length = Int32(packet.count)
        let status = unsafe output.withUnsafeMutableBufferPointer { bytes in
            unsafe srtp_unprotect_rtcp(inbound, bytes.baseAddress, &length)
        }
        try Self.check(status)
        if place == nil { _ = append(packet.u32(at: 4)) }
        return Int(length)
    }

    mutating func protectRTP(
        _ output: inout MutableSpan<UInt8>,
        length: Int,
        index: UInt64
    ) throws(SRTPError) -> Int {
        #if DEBUG || SFUD_INDEX_GUARD
            sent?.note(output.span, length, Span(), index: index)
        #endif
        try follow(output.span.u32(at: 8), to: index)
        var total = Int32(length)
        let status = unsafe output.withUnsafeMutableBufferPointer { bytes in
            unsafe srtp_protect(outbound, bytes.baseAddress, &total)
        }
        try Self.check(status)
        return Int(total)
    }

    mutating func protectRTCP(
        _ buffer: inout MutableSpan<UInt8>,
        length: Int
    ) throws(SRTPError) -> Int {
        let ssrc = buffer.span.u32(at: 4)
        var used = controlIndexes[ssrc]
        if used == nil { used = try passControlIndexes(of: ssrc) }
        let index = used ?? 0
        controlIndexes[ssrc] = index &+ 1
        saved?.noteRTCPOut(index &+ 1)
        var total = Int32(length)
        let status = unsafe buffer.withUnsafeMutableBufferPointer { bytes in
            unsafe srtp_protect_rtcp(outbound, bytes.baseAddress, &total)
        }
        try Self.check(status)
        return Int(total)
    }

    /// Passes over the SRTCP indexes that an earlier process may have used.
    ///
    /// libsrtp2 has no way to set the index, so empty packets are encrypted and discarded.
    private func passControlIndexes(of ssrc: UInt32) throws(SRTPError) -> UInt32 {
        var packet = [64 of UInt8](repeating: 0)
        for _ in 0..<firstControlIndex {
            packet[0] = 0x80
            packet[1] = 201
            for byte in 0..<4 {
                packet[4 + byte] = UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * byte))
            }
            var length: Int32 = 8
            var bytes = packet.mutableSpan
            let status = unsafe bytes.withUnsafeMutableBufferPointer { bytes in
                unsafe srtp_protect_rtcp(outbound, bytes.baseAddress, &length)
            }
            try Self.check(status)
        }
        return firstControlIndex
    }

    mutating func removeIncoming(_ ssrc: UInt32) {
        guard let place = incoming.firstIndex(where: { $0.ssrc == ssrc }) else { return }
        incoming.swapAt(place, incoming.count - 1)
        incoming.removeLast()
        // Unlike all other libsrtp2 calls, this one takes network byte order.
        _ = unsafe srtp_remove_stream(inbound, ssrc.bigEndian)
        saved?.noteCount(incoming.count)
        if place < incoming.count { save(place) }
    }

    /// Returns the position of the SSRC, or `nil` if it is new and there is room for it.
    private func admit(_ ssrc: UInt32) throws(SRTPError) -> Int? {
        if let place = incoming.firstIndex(where: { $0.ssrc == ssrc }) { return place }
        guard incoming.count < maxStreams else { throw .streamLimit }
        return nil
    }

    /// Sets a later roll-over counter for a refused packet; returns whether to check it again.
    private mutating func search(at place: Int) -> Bool {
        let refused = incoming[place].refused
        incoming[place].refused = refused &+ 1
        guard let round = RolloverCounterSearch.round(after: refused) else { return false }
        let ssrc = incoming[place].ssrc
        var counter: UInt32 = 0
        // libsrtp2's estimate may be the previous counter.
        guard unsafe srtp_get_stream_roc(inbound, ssrc, &counter) == srtp_err_status_ok else {
            return false
        }
        return unsafe srtp_set_stream_roc(inbound, ssrc, counter &+ (round - 1))
            == srtp_err_status_ok
    }

    /// Sets libsrtp2's roll-over counter to that of `index`.
    ///
    /// libsrtp2 estimates the counter from the sequence number, correctly for steps below 2^15.
    private mutating func follow(_ ssrc: UInt32, to index: UInt64) throws(SRTPError) {
        guard let place = outgoing.firstIndex(where: { $0.ssrc == ssrc }) else {
            if index >> 16 > 0 { try open(ssrc, at: index) }
            outgoing.append(OutgoingStream(ssrc: ssrc, newest: index))
            return
        }
        let newest = outgoing[place].newest
        if index > newest {
            if index - newest >= 1 << 15 { try turn(ssrc, to: index) }
            outgoing[place].newest = index
        } else if newest - index >= UInt64(SRTPSession.replayWindow) {
            throw .replay
        }
    }

    /// Creates a stream whose first counter is not 0.
    ///
    /// libsrtp2 creates a stream only with its first packet, so an empty packet is protected and
    /// discarded. Its index is not used for anything else.
    private func open(_ ssrc: UInt32, at index: UInt64) throws(SRTPError) {
        var packet = [64 of UInt8](repeating: 0)
        packet[0] = 0x80
        for byte in 0..<4 { packet[8 + byte] = UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * byte)) }
        var length: Int32 = 12
        var bytes = packet.mutableSpan
        let status = unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            unsafe srtp_protect(outbound, bytes.baseAddress, &length)
        }
        try Self.check(status)
        try turn(ssrc, to: index)
    }

    private func turn(_ ssrc: UInt32, to index: UInt64) throws(SRTPError) {
        let counter = UInt32(truncatingIfNeeded: index >> 16)
        try Self.check(unsafe srtp_set_stream_roc(outbound, ssrc, counter))
    }

    private static func createBoth(
        _ profile: SRTPProfile,
        _ keys: SRTPKeys
    ) throws(SRTPError) -> (inbound: srtp_t, outbound: srtp_t) {
        guard libraryIsReady else { throw .unavailable }
        let inbound = unsafe try create(profile, keys.remote, ssrc_any_inbound)
        do throws(SRTPError) {
            return unsafe (inbound, try create(profile, keys.local, ssrc_any_outbound))
        } catch {
            _ = unsafe srtp_dealloc(inbound)
            throw error
        }
    }

    private static func create(
        _ profile: SRTPProfile,
        _ key: Span<UInt8>,
        _ direction: srtp_ssrc_type_t
    ) throws(SRTPError) -> srtp_t {
        var session: srtp_t?
        let status = unsafe withPolicy(profile, key, direction, 0) {
            unsafe srtp_create(&session, &$0)
        }
        try check(status)
        guard let session = unsafe session else { throw .unavailable }
        return unsafe session
    }

    private static func withPolicy(
        _ profile: SRTPProfile,
        _ key: Span<UInt8>,
        _ direction: srtp_ssrc_type_t,
        _ ssrc: UInt32,
        _ body: (inout srtp_policy_t) -> srtp_err_status_t
    ) -> srtp_err_status_t {
        var policy = unsafe srtp_policy_t()
        unsafe policy.ssrc.type = direction
        unsafe policy.ssrc.value = ssrc
        switch profile {
        case .aes128CmSha1_80:
            unsafe srtp_crypto_policy_set_rtp_default(&policy.rtp)
            unsafe srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        case .aeadAes128Gcm:
            unsafe srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            unsafe srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aeadAes256Gcm:
            unsafe srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
            unsafe srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
        }
        unsafe policy.window_size = UInt(SRTPSession.replayWindow)
        unsafe policy.allow_repeat_tx = 1
        return unsafe key.withUnsafeBufferPointer { key in
            // libsrtp2 only reads the key: its parameter lacks a const.
            unsafe policy.key = UnsafeMutablePointer(mutating: key.baseAddress)
            return unsafe body(&policy)
        }
    }

    private static func check(_ status: srtp_err_status_t) throws(SRTPError) {
        switch status {
        case srtp_err_status_ok: return
        case srtp_err_status_auth_fail, srtp_err_status_cipher_fail: throw .authentication
        case srtp_err_status_replay_fail, srtp_err_status_replay_old,
            srtp_err_status_pkt_idx_old:
            throw .replay
        case srtp_err_status_key_expired: throw .exhausted
        case srtp_err_status_alloc_fail, srtp_err_status_init_fail: throw .unavailable
        default: throw .malformed
        }
    }

    /// Whether libsrtp2 was initialized; this happens once in the process, on first use.
    private static let libraryIsReady = srtp_init() == srtp_err_status_ok
}
