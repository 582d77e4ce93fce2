import Foundation
import TestSupport
import Testing

@testable import SFU

/// Equivalence of both engines: the same random packets give the same bytes and results.
@Suite("SRTP engines", .enabled(if: SRTPEngine.available.count > 1))
struct SRTPEqualityTests {
    /// Number of packets: a million in all in release mode, unless the environment says otherwise.
    static let packets: Int = {
        if let text = ProcessInfo.processInfo.environment["SFUD_SRTP_PACKETS"],
            let count = Int(text)
        {
            return count
        }
        #if DEBUG
            return 12_000
        #else
            return 1_000_000
        #endif
    }()

    @Test(arguments: SRTPProfile.allCases)
    func `both engines give equal packets`(profile: SRTPProfile) throws {
        var traffic = SRTPTraffic(seed: UInt64(profile.rawValue))
        var portable = try SRTPEnds(profile, .libsrtp2, seed: 5, maxStreams: 12)
        var fast = try SRTPEnds(profile, .ipsecMB, seed: 5, maxStreams: 12)
        var seen: [SRTPError: Int] = [:]
        var good = 0
        var differing = 0

        for _ in 0..<Self.packets / SRTPProfile.allCases.count {
            let packet = traffic.next()
            let prefix = traffic.prefix()
            let wire: [UInt8]
            let other: [UInt8]
            switch packet {
            case .rtp(let bytes, let roc):
                wire = portable.protect(bytes, roc: roc, prefix: prefix)
                other = fast.protect(bytes, roc: roc, prefix: prefix)
            case .rtcp(let bytes):
                wire = portable.protectRTCP(bytes)
                other = fast.protectRTCP(bytes)
            }
            if wire != other || wire.isEmpty { differing += 1 }

            for (delivered, isRTCP) in traffic.deliveries(of: wire, packet) {
                let verdict =
                    isRTCP ? portable.unprotectRTCP(delivered) : portable.unprotect(delivered)
                let otherVerdict =
                    isRTCP ? fast.unprotectRTCP(delivered) : fast.unprotect(delivered)
                if verdict != otherVerdict { differing += 1 }
                switch verdict {
                case .success: good += 1
                case .failure(let error): seen[error, default: 0] += 1
                }
            }
        }
        #expect(differing == 0)
        #expect(good > Self.packets / 6)
        for error in [SRTPError.authentication, .replay, .malformed, .streamLimit] {
            #expect(seen[error, default: 0] > 0, "\(error) never came")
        }
    }

    @Test(arguments: SRTPProfile.allCases)
    func `both engines give the same results for noise`(profile: SRTPProfile) throws {
        var random = SeededRandom(seed: 77)
        var portable = try SRTPEnds(profile, .libsrtp2)
        var fast = try SRTPEnds(profile, .ipsecMB)
        var differing = 0
        for _ in 0..<3_000 {
            var noise = random.bytes(Int.random(in: 0..<200, using: &random))
            if let first = noise.first { noise[0] = first & 0x3f | 0x80 }
            if portable.unprotect(noise) != fast.unprotect(noise) { differing += 1 }
            if portable.unprotectRTCP(noise) != fast.unprotectRTCP(noise) { differing += 1 }
        }
        #expect(differing == 0)
    }
}

/// Random packets of random streams, with the effects of a bad network.
struct SRTPTraffic {
    enum Item {
        case rtp([UInt8], roc: UInt64)
        case rtcp([UInt8])
    }

    private var random: SeededRandom
    private var indexes: [UInt64]
    private var held: [([UInt8], Bool)] = []

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        // Close to the first wrap, where roll-over counters really have to be guessed.
        indexes = (0..<14).map { $0 % 3 == 0 ? 65_500 : UInt64($0) * 4_000 }
    }

    mutating func next() -> Item {
        let stream = pick(100) == 0 ? pick(14) : pick(8)
        let ssrc = (0..<4).map { UInt8(stream * 16 + $0) }
        if pick(10) == 0 {
            let size = 4 * (2 + pick(120))
            return .rtcp(
                [0x80 | UInt8(pick(32)), 200] + random.bytes(2) + ssrc
                    + random.bytes(size - 8)
            )
        }
        switch pick(1_000) {
        case 0: indexes[stream] += UInt64(20_000 + pick(12_000))
        case 1...10: indexes[stream] += UInt64(pick(1_500))
        case 11...60:
            let late = indexes[stream] - min(indexes[stream], UInt64(pick(1_000)))
            return .rtp(rtp(late, ssrc), roc: late >> 16)
        default: indexes[stream] += 1
        }
        return .rtp(rtp(indexes[stream], ssrc), roc: indexes[stream] >> 16)
    }

    mutating func prefix() -> Int { pick(3) == 0 ? pick(64) : 0 }

    /// Returns deliveries: this packet or an earlier one, duplicated, late, forged or truncated.
    mutating func deliveries(of wire: [UInt8], _ item: Item) -> [([UInt8], Bool)] {
        let isRTCP = if case .rtcp = item { true } else { false }
        held.append((wire, isRTCP))
        var result: [([UInt8], Bool)] = []
        switch pick(20) {
        case 0...13: result.append(held[held.count - 1])
        case 14...16: result.append(held[pick(held.count)])
        case 17:
            var (forged, kind) = held[pick(held.count)]
            if !forged.isEmpty { forged[pick(forged.count)] ^= 1 << UInt8(pick(8)) }
            result.append((forged, kind))
        case 18:
            let (whole, kind) = held[pick(held.count)]
            result.append((Array(whole[..<pick(whole.count + 1)]), kind))
        default: result = [held[held.count - 1], held[pick(held.count)]]
        }
        if held.count > 48 { held.remove(at: pick(48)) }
        return result
    }

    private mutating func rtp(_ index: UInt64, _ ssrc: [UInt8]) -> [UInt8] {
        let sources = pick(4) == 0 ? pick(16) : 0
        let hasExtension = pick(3) == 0
        let head: UInt8 = 0x80 | (hasExtension ? 0x10 : 0) | UInt8(sources)
        var packet = [head, UInt8(pick(256))]
        packet += [UInt8(truncatingIfNeeded: index >> 8), UInt8(truncatingIfNeeded: index)]
        packet += random.bytes(4) + ssrc + random.bytes(4 * sources)
        if hasExtension {
            let words = pick(12)
            packet += [0xbe, 0xde, 0, UInt8(words)] + random.bytes(4 * words)
        }
        let size = pick(8) == 0 ? pick(20) : pick(1_500)
        return packet + random.bytes(max(0, min(size, 1_500 - packet.count)))
    }

    private mutating func pick(_ count: Int) -> Int {
        Int(truncatingIfNeeded: random.next() >> 33) % count
    }
}
