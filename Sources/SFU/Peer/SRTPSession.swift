package import RTP

/// One transport's SRTP state, both directions (RFC 3711, RFC 7714).
///
/// It belongs to one thread. What no engine has to decide is decided here, so that both engines
/// see well-formed packets only.
package struct SRTPSession: ~Copyable {
    package let profile: SRTPProfile
    private var portable: PortableSRTP?
    #if canImport(CIPSecMB)
        private var multiBuffer: MultiBufferSRTP?
    #endif

    /// How far back the replay window reaches, in packets, for RTP and RTCP.
    static let replayWindow = 1024
    static let rtcpReplayWindow = 128

    /// Derives the session keys; at most `maxStreams` incoming SSRCs are kept.
    ///
    /// Throws `unavailable` where the engine's library refuses.
    package init(
        profile: SRTPProfile,
        keys: SRTPKeys,
        context: SRTPContext,
        maxStreams: Int = 64
    ) throws(SRTPError) {
        self.profile = profile
        #if canImport(CIPSecMB)
            if let manager = context.manager {
                multiBuffer = try MultiBufferSRTP(
                    profile: profile,
                    keys: keys,
                    context: context,
                    manager: manager,
                    maxStreams: maxStreams
                )
                portable = nil
                return
            }
            multiBuffer = nil
        #endif
        portable = try PortableSRTP(profile: profile, keys: keys, maxStreams: maxStreams)
        #if DEBUG || SFUD_INDEX_GUARD
            portable?.sent = context.sentIndexes()
        #endif
    }

    /// Checks and decrypts a whole SRTP packet into `output`; returns the length in clear.
    ///
    /// `output` must have room for `packet.count` bytes, more than the result: what lies beyond
    /// the result is scratch. Roll-over counter, window and SSRC table change only after the tag
    /// has been found good.
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

    /// Checks and decrypts a whole SRTCP packet into `output`; returns the length in clear.
    ///
    /// As `unprotectRTP`. A packet that says it is not encrypted is refused.
    @_lifetime(output: copy output)
    package mutating func unprotectRTCP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        precondition(output.count >= packet.count)
        guard packet.count >= 8 + profile.rtcpOverhead, packet[0] >> 6 == 2 else {
            throw .malformed
        }
        // The E bit leads the index word: the last word with GCM, before the tag otherwise.
        let word = packet.count - (profile.isAEAD ? 4 : 4 + profile.rtpOverhead)
        guard packet[word] & 0x80 != 0 else { throw .authentication }
        #if canImport(CIPSecMB)
            if let length = try multiBuffer?.unprotectRTCP(packet, into: &output) {
                return length
            }
        #endif
        return try portable?.unprotectRTCP(packet, into: &output) ?? 0
    }

    /// Begins to encrypt one RTP packet into `output`; returns its length with the tag.
    ///
    /// `output` holds the header in its first `headerLength` bytes and after it `prefixLength`
    /// bytes of rewritten payload in clear; `rest` is what follows of the payload, wherever it
    /// lies. `index` is the packet's 48-bit index, the roll-over counter over the sequence
    /// number that the header has: a stream starts with counter 0. The same index may be
    /// protected again, up to `replayWindow` behind the newest, if the bytes are the same.
    /// There must be room for all of it and `rtpOverhead`.
    ///
    /// The bytes are final after `SRTPContext.finish()` only: until then the tag may be missing,
    /// though nothing is in clear any more, and `output`'s memory has to stay where it is and
    /// as it is. `rest` is not needed any longer.
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

    /// What holds of every packet to protect; throws `exhausted` past the last index.
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

    /// A short way to protect RTP, where the engine has one; it ends with the session.
    var outgoingKey: OutgoingKey? {
        mutating get {
            #if canImport(CIPSecMB)
                return multiBuffer?.outgoingKey
            #else
                return nil
            #endif
        }
    }

    /// Encrypts the `length` bytes of compound RTCP in `buffer`; returns the total length.
    ///
    /// The session numbers the SRTCP index, for each SSRC of ours from 1 on. There must be room
    /// for `rtcpOverhead`. The bytes are final at once, whatever RTP waits for `finish`.
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

    /// Forgets what is kept for an incoming SSRC, which then counts no more.
    package mutating func removeIncoming(_ ssrc: SSRC) {
        #if canImport(CIPSecMB)
            multiBuffer?.removeIncoming(ssrc.rawValue)
        #endif
        portable?.removeIncoming(ssrc.rawValue)
    }

    /// Length of what SRTP leaves in clear: fixed header, CSRCs and extension (RFC 3711 §3.1).
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
