package import RTP

/// SRTP and SRTCP state of one transport, both directions (RFC 3711, RFC 7714).
///
/// It belongs to one thread. Checks that do not depend on the engine are made here, so engines see
/// well-formed packets only.
package struct SRTPSession: ~Copyable {
    package let profile: SRTPProfile
    private var portable: PortableSRTP?
    #if canImport(CIPSecMB)
        private var multiBuffer: MultiBufferSRTP?
    #endif

    /// Replay windows of RTP and RTCP, in packets.
    static let replayWindow = 1024
    static let rtcpReplayWindow = 128

    /// Derives the session keys and accepts at most `maxStreams` incoming SSRCs.
    ///
    /// Throws `unavailable` if the engine's library refuses.
    package init(
        profile: SRTPProfile,
        keys: SRTPKeys,
        context: SRTPContext,
        maxStreams: Int = 64
    ) throws(SRTPError) {
        try self.init(
            profile: profile,
            keys: keys,
            context: context,
            maxStreams: maxStreams,
            saved: nil
        )
    }

    /// Likewise; what has to outlive the process is stored at `saved` before it is used.
    init(
        profile: SRTPProfile,
        keys: SRTPKeys,
        context: SRTPContext,
        maxStreams: Int,
        saved: SavedPlace?
    ) throws(SRTPError) {
        self.profile = profile
        #if canImport(CIPSecMB)
            if let manager = context.manager {
                multiBuffer = try MultiBufferSRTP(
                    profile: profile,
                    keys: keys,
                    context: context,
                    manager: manager,
                    maxStreams: maxStreams,
                    saved: saved
                )
                portable = nil
                return
            }
            multiBuffer = nil
        #endif
        portable = try PortableSRTP(profile: profile, keys: keys, maxStreams: maxStreams)
        portable?.saved = saved
        #if DEBUG || SFUD_INDEX_GUARD
            portable?.sent = context.indexReuseDetector()
        #endif
    }

    /// Continues the indexes of an earlier process with the same keys; call it before any packet.
    ///
    /// Nothing that the earlier process accepted is accepted again, and no index that it may have
    /// used is used again.
    mutating func resume(
        _ streams: [SavedTransport.Stream],
        rtcpHighest: UInt32,
        _ keys: SRTPKeys
    ) throws(SRTPError) {
        #if canImport(CIPSecMB)
            multiBuffer?.resume(streams, rtcpHighest: rtcpHighest)
        #endif
        try portable?.resume(streams, rtcpHighest: rtcpHighest, profile, keys)
    }

    /// Authenticates and decrypts an SRTP packet into `output`; returns the plaintext length.
    ///
    /// `output` must have room for `packet.count` bytes, more than the result; bytes beyond the
    /// result are scratch space. Roll-over counter, replay window and SSRC table change only once
    /// the tag is verified.
    @_lifetime(output: copy output)
    package mutating func unprotectRTP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        precondition(output.count >= packet.count)
        let headerLength = try Self.headerLength(of: packet)
        guard headerLength + profile.rtpOverhead <= packet.count else { throw .malformed }
        #if canImport(CIPSecMB)
            let length = try multiBuffer?.unprotectRTP(
                packet,
                headerLength: headerLength,
                into: &output
            )
            if let length { return length }
        #endif
        return try portable?.unprotectRTP(packet, into: &output) ?? 0
    }

    /// Authenticates and decrypts an SRTCP packet into `output`; returns the plaintext length.
    ///
    /// `output` follows the rules of `unprotectRTP`. A packet whose E flag is not set is refused.
    @_lifetime(output: copy output)
    package mutating func unprotectRTCP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        precondition(output.count >= packet.count)
        guard packet.count >= 8 + profile.rtcpOverhead, packet[0] >> 6 == 2 else {
            throw .malformed
        }
        // The index word, which begins with the E bit, is last with GCM and precedes the tag
        // otherwise.
        let word = packet.count - (profile.isAEAD ? 4 : 4 + profile.rtpOverhead)
        guard packet[word] & 0x80 != 0 else { throw .authentication }
        #if canImport(CIPSecMB)
            if let length = try multiBuffer?.unprotectRTCP(packet, into: &output) {
                return length
            }
        #endif
        return try portable?.unprotectRTCP(packet, into: &output) ?? 0
    }

    /// Begins the encryption of one RTP packet in `output`; returns its length with the tag.
    ///
    /// `output` holds the header in its first `headerLength` bytes, followed by `prefixLength`
    /// bytes of rewritten plaintext payload. `rest` is the remaining payload, in any memory. There
    /// must be room for all of it and `rtpOverhead`.
    ///
    /// `index` is the packet's 48-bit index: the roll-over counter followed by the sequence number
    /// in the header. A stream starts with counter 0. The same index may be protected again, up to
    /// `replayWindow` behind the newest, if the bytes are the same.
    ///
    /// The packet is complete only after `SRTPContext.finish()`. Until then its payload is
    /// encrypted but its tag may be missing, so `output`'s memory must neither move nor change.
    /// `rest` is no longer needed after this call.
    @_lifetime(output: copy output)
    package mutating func protectRTP(
        _ output: inout MutableSpan<UInt8>,
        headerLength: Int,
        prefixLength: Int,
        rest: Span<UInt8>,
        index: UInt64
    ) throws(SRTPError) -> Int {
        let length = headerLength + prefixLength + rest.count
        precondition(length + profile.rtpOverhead <= output.count)
        #if canImport(CIPSecMB)
            let total = try outgoingKey?.protectRTP(
                &output,
                headerLength: headerLength,
                prefixLength: prefixLength,
                rest: rest,
                index: index
            )
            if let total { return total }
        #endif
        try Self.check(
            output.span,
            headerLength: headerLength,
            prefixLength: prefixLength,
            index: index
        )
        output.copy(rest, at: headerLength + prefixLength)
        return try portable?.protectRTP(&output, length: length, index: index) ?? 0
    }

    /// Checks the preconditions of every packet to protect; throws `exhausted` past the last index.
    static func check(
        _ output: Span<UInt8>,
        headerLength: Int,
        prefixLength: Int,
        index: UInt64
    ) throws(SRTPError) {
        precondition(headerLength >= 12 && prefixLength >= 0)
        precondition(UInt16(truncatingIfNeeded: index) == output.u16(at: 2))
        guard index < 1 << 48 else { throw .exhausted }
    }

    /// Direct handle for RTP encryption, if the engine has one; valid only as long as the session.
    var outgoingKey: OutgoingKey? {
        mutating get {
            #if canImport(CIPSecMB)
                return multiBuffer?.outgoingKey
            #else
                return nil
            #endif
        }
    }

    /// Encrypts `length` bytes of compound RTCP in `buffer`; returns the total length.
    ///
    /// The session assigns the SRTCP index, from 1 for each of our SSRCs. There must be room for
    /// `rtcpOverhead`. The result is complete at once, even if RTP packets await `finish`.
    @_lifetime(buffer: copy buffer)
    package mutating func protectRTCP(
        _ buffer: inout MutableSpan<UInt8>,
        length: Int
    ) throws(SRTPError) -> Int {
        precondition(length >= 8 && length + profile.rtcpOverhead <= buffer.count)
        #if canImport(CIPSecMB)
            if let total = try multiBuffer?.protectRTCP(&buffer, length: length) {
                return total
            }
        #endif
        return try portable?.protectRTCP(&buffer, length: length) ?? 0
    }

    /// Removes the state of an incoming SSRC, which no longer counts against `maxStreams`.
    package mutating func removeIncoming(_ ssrc: SSRC) {
        #if canImport(CIPSecMB)
            multiBuffer?.removeIncoming(ssrc.rawValue)
        #endif
        portable?.removeIncoming(ssrc.rawValue)
    }

    /// Returns the length of the unencrypted part: fixed header, CSRCs and extension (RFC 3711
    /// §3.1).
    private static func headerLength(of packet: Span<UInt8>) throws(SRTPError) -> Int {
        do throws(PacketError) {
            return try Packet(encrypted: packet).headerLength
        } catch {
            throw .malformed
        }
    }
}

extension MutableSpan<UInt8> {
    /// Copies all of `source` to `offset`.
    mutating func copy(_ source: Span<UInt8>, at offset: Int) {
        precondition(offset >= 0 && offset + source.count <= count)
        for index in source.indices { self[offset + index] = source[index] }
    }
}
