#if canImport(CIPSecMB)
    internal import COpenSSL
    internal import RTP

    /// SRTP session by intel-ipsec-mb.
    ///
    /// The library only encrypts and hashes; indexes and replay windows are kept here.
    struct MultiBufferSRTP: ~Copyable {
        /// Cipher whose key is expanded when the first packet arrives, as many peers send none.
        private var rtpIn: SRTPTransform
        private let rtcpIn: SRTPTransform
        private let rtpOut: OutgoingCipher
        private let rtcpOut: SRTPTransform
        private var incoming: SRTPIncoming
        private var outgoing = SRTCPIndexes()
        private let profile: SRTPProfile

        init(
            profile: SRTPProfile,
            keys: SRTPKeys,
            context: SRTPContext,
            manager: MultiBufferManager,
            maxStreams: Int,
            saved: SavedPlace?
        ) throws(SRTPError) {
            let rtpIn = try Self.rtp(profile, keys.remote, manager, rare: true)
            let rtcpIn = try Self.rtcp(profile, keys.remote, manager)
            let rtpOut = try Self.rtp(profile, keys.local, manager, rare: false)
            let rtcpOut = try Self.rtcp(profile, keys.local, manager)
            self.rtpIn = rtpIn
            self.rtcpIn = rtcpIn
            self.rtpOut = OutgoingCipher(rtpOut, context)
            self.rtcpOut = rtcpOut
            self.profile = profile
            incoming = SRTPIncoming(maxStreams: maxStreams)
            incoming.saved = saved
            outgoing.saved = saved
        }

        /// Continues the indexes of an earlier process.
        mutating func resume(_ streams: [SavedTransport.Stream], rtcpHighest: UInt32) {
            for stream in streams { incoming.resume(stream) }
            outgoing.resume(after: rtcpHighest)
        }

        mutating func unprotectRTP(
            _ packet: Span<UInt8>,
            headerLength: Int,
            into output: inout MutableSpan<UInt8>
        ) throws(SRTPError) -> Int {
            let (ssrc, sequence) = (packet.u32(at: 8), packet.u16(at: 2))
            do throws(SRTPError) {
                let candidate = try incoming.rtpCandidate(ssrc, sequence: sequence)
                try open(packet, headerLength: headerLength, as: candidate, into: &output)
            } catch {
                let later = incoming.laterCandidate(ssrc, sequence: sequence)
                guard let later else { throw error }
                try open(packet, headerLength: headerLength, as: later, into: &output)
            }
            return packet.count - profile.rtpOverhead
        }

        /// Decrypts and accepts the packet if its tag verifies with the candidate's index.
        private mutating func open(
            _ packet: Span<UInt8>,
            headerLength: Int,
            as candidate: SRTPIncoming.Candidate,
            into output: inout MutableSpan<UInt8>
        ) throws(SRTPError) {
            let isGood = rtpIn.unprotectRTP(
                packet,
                headerLength: headerLength,
                ssrc: packet.u32(at: 8),
                index: candidate.index,
                into: &output
            )
            guard isGood else { throw .authentication }
            incoming.acceptRTP(candidate)
            rtpIn.prepare()
        }

        mutating func unprotectRTCP(
            _ packet: Span<UInt8>,
            into output: inout MutableSpan<UInt8>
        ) throws(SRTPError) -> Int {
            let ssrc = packet.u32(at: 4)
            let word = packet.count - (profile.isAEAD ? 4 : 4 + profile.rtpOverhead)
            let index = packet.u32(at: word) & 0x7fff_ffff
            let candidate = try incoming.rtcpCandidate(ssrc, index: index)
            guard rtcpIn.unprotectRTCP(packet, ssrc: ssrc, index: index, into: &output) else {
                throw .authentication
            }
            incoming.acceptRTCP(candidate)
            return packet.count - profile.rtcpOverhead
        }

        /// Direct handle for RTP encryption, valid as long as this session.
        var outgoingKey: OutgoingKey { rtpOut.key }

        mutating func protectRTCP(
            _ buffer: inout MutableSpan<UInt8>,
            length: Int
        ) throws(SRTPError) -> Int {
            let ssrc = buffer.span.u32(at: 4)
            let index = try outgoing.next(for: ssrc)
            guard rtcpOut.protectRTCP(&buffer, length: length, ssrc: ssrc, index: index) else {
                throw .unavailable
            }
            return length + profile.rtcpOverhead
        }

        mutating func removeIncoming(_ ssrc: UInt32) { incoming.remove(ssrc) }

        private static func rtp(
            _ profile: SRTPProfile,
            _ master: Span<UInt8>,
            _ manager: MultiBufferManager,
            rare: Bool
        ) throws(SRTPError) -> SRTPTransform {
            try transform(
                profile,
                master,
                manager,
                .rtpEncryption,
                .rtpAuthentication,
                .rtpSalt,
                rare: rare
            )
        }

        private static func rtcp(
            _ profile: SRTPProfile,
            _ master: Span<UInt8>,
            _ manager: MultiBufferManager
        ) throws(SRTPError) -> SRTPTransform {
            try transform(
                profile,
                master,
                manager,
                .rtcpEncryption,
                .rtcpAuthentication,
                .rtcpSalt,
                rare: true
            )
        }

        private static func transform(
            _ profile: SRTPProfile,
            _ master: Span<UInt8>,
            _ manager: MultiBufferManager,
            _ encryption: SRTPKeyDerivation.Label,
            _ authentication: SRTPKeyDerivation.Label,
            _ salting: SRTPKeyDerivation.Label,
            rare: Bool
        ) throws(SRTPError) -> SRTPTransform {
            let key = master.extracting(0..<profile.keyLength)
            let salt = master.extracting(profile.keyLength..<master.count)
            // Encryption key, salt and authentication key, on the stack and wiped afterwards.
            var derived = [66 of UInt8](repeating: 0)
            var span = derived.mutableSpan
            defer { span.wipe() }
            let saltStart = profile.keyLength
            let hashStart = saltStart + profile.saltLength
            let end = profile.isAEAD ? hashStart : hashStart + Digest.sha1Length
            try derive(encryption, key, salt, into: &span, 0..<saltStart)
            try derive(salting, key, salt, into: &span, saltStart..<hashStart)
            try derive(authentication, key, salt, into: &span, hashStart..<end)
            return SRTPTransform(
                profile: profile,
                encryption: span.span.extracting(0..<saltStart),
                authentication: span.span.extracting(hashStart..<end),
                salt: span.span.extracting(saltStart..<hashStart),
                manager: manager,
                rare: rare
            )
        }

        private static func derive(
            _ label: SRTPKeyDerivation.Label,
            _ key: Span<UInt8>,
            _ salt: Span<UInt8>,
            into output: inout MutableSpan<UInt8>,
            _ range: Range<Int>
        ) throws(SRTPError) {
            var part = output._mutatingExtracting(range)
            try SRTPKeyDerivation.derive(label, key: key, salt: salt, into: &part)
        }
    }

    /// SRTCP indexes of our sending SSRCs (RFC 3711 §3.4).
    struct SRTCPIndexes {
        private var last: [(ssrc: UInt32, index: UInt32)] = []
        /// Index before the first one of each SSRC.
        private var start: UInt32 = 0
        /// Copy of the highest index that outlives the process.
        var saved: SavedPlace?

        /// Returns the next index, starting at 1; throws `exhausted` after 2^31 - 1.
        mutating func next(for ssrc: UInt32) throws(SRTPError) -> UInt32 {
            let place = last.firstIndex { $0.ssrc == ssrc } ?? last.count
            if place == last.count { last.append((ssrc, start)) }
            guard last[place].index < 0x7fff_ffff else { throw .exhausted }
            last[place].index += 1
            saved?.noteRTCPOut(last[place].index)
            return last[place].index
        }

        /// Continues after the highest index that an earlier process used with any SSRC.
        mutating func resume(after index: UInt32) {
            start = index
            saved?.noteRTCPOut(index)
        }
    }

    extension MutableSpan<UInt8> {
        /// Overwrites all bytes in a way that no optimizer removes.
        fileprivate mutating func wipe() {
            unsafe withUnsafeMutableBufferPointer { bytes in
                unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
            }
        }
    }
#endif
