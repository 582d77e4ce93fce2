#if DEBUG || SFUD_INDEX_GUARD
    internal import RTP

    /// Detector of SRTP index reuse under one key (RFC 3711 §9.1, RFC 7714 §8).
    ///
    /// Debug builds and the simulator trap if a second, different packet is encrypted under the
    /// same index. The check runs at the cipher, which every outgoing packet passes.
    final class IndexReuseDetector {
        private struct Entry {
            var index = UInt64.max
            var hash = 0
        }

        /// Number of remembered indexes per SSRC, more than any receiver's replay window.
        private static let reach = 4_096

        private var streams: [UInt32: [Entry]] = [:]

        /// Records a plaintext packet before its encryption: the first `length` bytes of `packet`,
        /// then `rest`.
        func note(_ packet: Span<UInt8>, _ length: Int, _ rest: Span<UInt8>, index: UInt64) {
            let ssrc = packet.u32(at: 8)
            let hash = Self.hash(packet.extracting(0..<length), rest)
            let place = Int(truncatingIfNeeded: index) & (Self.reach - 1)
            let known = streams[ssrc]?[place] ?? Entry()
            guard known.index != index else {
                precondition(known.hash == hash, "two packets under one SRTP index")
                return
            }
            precondition(
                known.index == .max || known.index < index,
                "an SRTP index from further back than anybody remembers"
            )
            streams[ssrc, default: [Entry](repeating: Entry(), count: Self.reach)][place] =
                Entry(index: index, hash: hash)
        }

        private static func hash(_ head: Span<UInt8>, _ rest: Span<UInt8>) -> Int {
            var hasher = Hasher()
            for position in head.indices { hasher.combine(head[position]) }
            for position in rest.indices { hasher.combine(rest[position]) }
            return hasher.finalize()
        }
    }
#endif
