import RTP
import Testing

@testable import SFU

/// An available engine with a profile.
struct SRTPCase: CustomTestStringConvertible, Sendable {
    var engine: SRTPEngine
    var profile: SRTPProfile

    var testDescription: String { "\(engine.rawValue), \(profile.name)" }

    static let all = SRTPEngine.available.flatMap { engine in
        SRTPProfile.allCases.map { Self(engine: engine, profile: $0) }
    }
}

@Suite("SRTP session")
struct SRTPSessionTests {
    @Test(arguments: SRTPCase.all, [0, 1, 3, 16, 40, 99])
    func `RTP round-trips`(_ run: SRTPCase, prefix: Int) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        for size in [0, 1, 15, 16, 17, 40, 1_400] {
            let packet = rtpPacket(UInt16(size), payload: size)
            let wire = ends.protect(packet, prefix: prefix)
            #expect(wire.count == packet.count + run.profile.rtpOverhead)
            #expect(wire.prefix(12) == packet.prefix(12))
            #expect(size < 15 || wire[12..<packet.count] != packet[12...])
            #expect(ends.unprotect(wire) == .success(packet))
        }
    }

    @Test(arguments: SRTPCase.all)
    func `RTCP round-trips`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        for words in [0, 1, 3, 4, 100] {
            let packet = rtcpPacket(words: words)
            let wire = ends.protectRTCP(packet)
            #expect(wire.count == packet.count + run.profile.rtcpOverhead)
            #expect(ends.unprotectRTCP(wire) == .success(packet))
        }
    }

    @Test(arguments: SRTPCase.all)
    func `a packet is accepted once`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        let first = ends.protect(rtpPacket(1_000))
        #expect(ends.unprotect(first) == .success(rtpPacket(1_000)))
        for _ in 0..<5 { #expect(ends.unprotect(first) == .failure(.replay)) }
        var index: UInt64 = 1_000
        for gap in [63, 64, 960, 1_024, 65_535, 65_537] as [UInt64] {
            while index < 1_000 + gap {
                index = min(index + 61, 1_000 + gap)
                let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
                let wire = ends.protect(packet, roc: index >> 16)
                #expect(ends.unprotect(wire) == .success(packet))
            }
            // After a full wrap the old packet looks like a new one with a bad tag.
            let verdict = ends.unprotect(first)
            #expect(verdict == .failure(.replay) || verdict == .failure(.authentication))
        }
    }

    @Test(arguments: SRTPCase.all)
    func `RTCP is accepted once`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        let packets = (0..<200).map { _ in ends.protectRTCP(rtcpPacket()) }
        #expect(ends.unprotectRTCP(packets[0]) == .success(rtcpPacket()))
        #expect(ends.unprotectRTCP(packets[0]) == .failure(.replay))
        #expect(ends.unprotectRTCP(packets[127]) == .success(rtcpPacket()))
        #expect(ends.unprotectRTCP(packets[1]) == .success(rtcpPacket()))
        #expect(ends.unprotectRTCP(packets[199]) == .success(rtcpPacket()))
        #expect(ends.unprotectRTCP(packets[71]) == .failure(.replay))
        #expect(ends.unprotectRTCP(packets[72]) == .success(rtcpPacket()))
        for wire in packets[128..<199] {
            #expect(ends.unprotectRTCP(wire) == .success(rtcpPacket()))
        }
        for wire in packets[127...] { #expect(ends.unprotectRTCP(wire) == .failure(.replay)) }
    }

    @Test(arguments: SRTPCase.all)
    func `the window has 1024 places`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        let late = (1...1_030).map { ends.protect(rtpPacket(UInt16(5_000 + $0))) }
        #expect(ends.unprotect(late[1_029]) == .success(rtpPacket(6_030)))
        #expect(ends.unprotect(late[6]) == .success(rtpPacket(5_007)))
        #expect(ends.unprotect(late[5]) == .failure(.replay))
        #expect(ends.unprotect(late[1_028]) == .success(rtpPacket(6_029)))
    }

    @Test(arguments: SRTPCase.all)
    func `numbers wrap, and packets are late across the wrap`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        var wires: [UInt64: [UInt8]] = [:]
        for index in 65_000..<66_100 as Range<UInt64> {
            let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
            wires[index] = ends.protect(packet, roc: index >> 16)
        }
        for index in [65_000, 65_535, 65_537, 65_534, 65_536, 66_000, 65_400] as [UInt64] {
            let wire = try #require(wires[index])
            let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
            #expect(ends.unprotect(wire) == .success(packet), "\(index)")
        }
        // A retransmission is identical, bit for bit, also across the wrap.
        for index in [66_099, 66_000, 65_535, 65_200] as [UInt64] {
            let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
            #expect(ends.protect(packet, roc: index >> 16) == wires[index], "\(index)")
        }
    }

    /// Beyond 2^15 the sequence number alone implies a wrong roll-over counter (RFC 3711 §3.3.1).
    @Test(arguments: SRTPCase.all, [33_000, 40_000, 66_000, 100_000, 300_000] as [UInt64])
    func `G3 a stream is found again however many packets were lost`(
        _ run: SRTPCase,
        lost: UInt64
    ) throws {
        for start in [100, 60_000, 65_536, 131_000] as [UInt64] {
            var ends = try SRTPEnds(run.profile, run.engine)
            func pass(_ index: UInt64) -> Bool {
                let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
                return ends.unprotect(ends.protect(packet, roc: index >> 16)) == .success(packet)
            }
            for index in stride(from: 0, to: start, by: 30_000) { #expect(pass(index)) }
            #expect(pass(start))
            let old = ends.protect(rtpPacket(UInt16(truncatingIfNeeded: start)), roc: start >> 16)
            let found = (1...100).first { pass(start + lost + $0) }
            let first = try #require(found, "from \(start)")
            // From there on nothing is lost, and earlier packets stay rejected.
            let after = (first + 1...first + 50).allSatisfy { pass(start + lost + $0) }
            #expect(after)
            for _ in 0..<100 { #expect(throws: SRTPError.self) { try ends.unprotect(old).get() } }
            #expect(pass(start + lost + first + 51))
        }
    }

    /// Good packets are accepted as before while many in a row are rejected.
    @Test(arguments: SRTPCase.all)
    func `G3 forged packets in between cost a stream nothing`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        for index in 65_500..<65_600 as Range<UInt64> {
            let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
            let wire = ends.protect(packet, roc: index >> 16)
            var forged = wire
            forged[forged.count - 1] ^= 1
            for _ in 0..<Int(index % 50 + 20) {
                #expect(throws: SRTPError.self) { try ends.unprotect(forged).get() }
            }
            #expect(ends.unprotect(wire) == .success(packet), "\(index)")
        }
    }

    @Test(arguments: SRTPCase.all)
    func `the caller's index is followed over any step`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        for index in [5, 40_000, 120_000, 600_000, 600_001, 600_000] as [UInt64] {
            let packet = rtpPacket(UInt16(truncatingIfNeeded: index))
            let wire = ends.protect(packet, roc: index >> 16)
            #expect(wire.count == packet.count + run.profile.rtpOverhead, "\(index)")
        }
        let late = rtpPacket(7, ssrc: 9)
        #expect(!ends.protect(late, roc: 3).isEmpty)
        #expect(!ends.protect(rtpPacket(8, ssrc: 9), roc: 3).isEmpty)
    }

    @Test(arguments: SRTPCase.all)
    func `one flipped bit is refused and leaves no trace`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine, maxStreams: 1)
        let wire = ends.protect(rtpPacket(7, payload: 20))
        for bit in 0..<wire.count * 8 {
            var forged = wire
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            guard case .failure = ends.unprotect(forged) else {
                Issue.record("bit \(bit) was let through")
                continue
            }
        }
        #expect(ends.unprotect(wire) == .success(rtpPacket(7, payload: 20)))
        // Likewise for a known stream: a forged packet far ahead moves neither counter nor window.
        for sequence in [8, 1_500, 40_000, 65_535] as [UInt16] {
            var forged = wire
            forged[2] = UInt8(sequence >> 8)
            forged[3] = UInt8(sequence & 0xff)
            #expect(ends.unprotect(forged) == .failure(.authentication))
        }
        #expect(ends.unprotect(ends.protect(rtpPacket(9))) == .success(rtpPacket(9)))
    }

    @Test(arguments: SRTPCase.all)
    func `one flipped bit of RTCP is refused and leaves no trace`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine, maxStreams: 1)
        let wire = ends.protectRTCP(rtcpPacket())
        for bit in 0..<wire.count * 8 {
            var forged = wire
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            guard case .failure = ends.unprotectRTCP(forged) else {
                Issue.record("bit \(bit) was let through")
                continue
            }
        }
        #expect(ends.unprotectRTCP(wire) == .success(rtcpPacket()))
    }

    @Test(arguments: SRTPCase.all)
    func `short packets are malformed, whatever they hold`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        let whole = ends.protect(rtpPacket(1, payload: 20))
        let control = ends.protectRTCP(rtcpPacket())
        for length in 0..<12 + run.profile.rtpOverhead {
            #expect(ends.unprotect(Array(whole[..<length])) == .failure(.malformed))
        }
        for length in 0..<8 + run.profile.rtcpOverhead {
            #expect(ends.unprotectRTCP(Array(control[..<length])) == .failure(.malformed))
        }
        for length in 12 + run.profile.rtpOverhead..<whole.count {
            #expect(ends.unprotect(Array(whole[..<length])) == .failure(.authentication))
        }
        #expect(ends.unprotect(whole) == .success(rtpPacket(1, payload: 20)))
    }

    @Test(arguments: SRTPCase.all)
    func `SSRCs have a limit, and a removed one is forgotten`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine, maxStreams: 3)
        let wires = (1...4).map { ends.protect(rtpPacket(1, ssrc: UInt32($0))) }
        for place in 0..<3 {
            #expect(ends.unprotect(wires[place]) != .failure(.streamLimit))
        }
        #expect(ends.unprotect(wires[3]) == .failure(.streamLimit))
        let control = ends.protectRTCP(rtcpPacket(ssrc: 5))
        #expect(ends.unprotectRTCP(control) == .failure(.streamLimit))
        ends.receiver.removeIncoming(SSRC(rawValue: 2))
        ends.receiver.removeIncoming(SSRC(rawValue: 77))
        #expect(ends.unprotect(wires[3]) == .success(rtpPacket(1, ssrc: 4)))
        #expect(ends.unprotect(wires[2]) == .failure(.replay))
        ends.receiver.removeIncoming(SSRC(rawValue: 4))
        // All its state is gone, including its replay window.
        #expect(ends.unprotect(wires[1]) == .success(rtpPacket(1, ssrc: 2)))
    }

    @Test(arguments: SRTPCase.all)
    func `keys do not last for ever`(_ run: SRTPCase) throws {
        var ends = try SRTPEnds(run.profile, run.engine)
        var buffer = rtpPacket(0) + Array(repeating: 0, count: 16)
        let nothing: [UInt8] = []
        var span = buffer.mutableSpan
        var caught: SRTPError?
        do throws(SRTPError) {
            _ = try ends.sender.protectRTP(
                &span,
                headerLength: 12,
                prefixLength: 0,
                rest: nothing.span,
                index: 1 << 48
            )
        } catch {
            caught = error
        }
        #expect(caught == .exhausted)
    }
}
