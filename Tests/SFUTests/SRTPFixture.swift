import RTP
import TestSupport

@testable import SFU
@testable import WorkerInterface

/// Both ends of one association with one engine, and their buffers.
struct SRTPEnds: ~Copyable {
    var sender: SRTPSession
    var receiver: SRTPSession
    let profile: SRTPProfile
    let context: SRTPContext

    init(
        _ profile: SRTPProfile,
        _ engine: SRTPEngine,
        seed: UInt64 = 1,
        maxStreams: Int = 64,
        context: SRTPContext? = nil
    ) throws {
        var random = SeededRandom(seed: seed)
        let material = random.bytes(2 * (profile.keyLength + profile.saltLength))
        let context = context ?? SRTPContext(engine: engine)
        try self.init(profile, context, material: material, maxStreams: maxStreams)
    }

    /// Makes both ends with keys as the DTLS exporter gives them.
    init(
        _ profile: SRTPProfile,
        _ context: SRTPContext,
        material: [UInt8],
        maxStreams: Int = 64
    ) throws {
        let client = SRTPKeys(profile: profile, exported: material.span, role: .client)
        let server = SRTPKeys(profile: profile, exported: material.span, role: .server)
        let sender = try SRTPSession(profile: profile, keys: client, context: context)
        let receiver = try SRTPSession(
            profile: profile,
            keys: server,
            context: context,
            maxStreams: maxStreams
        )
        self.init(profile, context, sender, receiver)
    }

    private init(
        _ profile: SRTPProfile,
        _ context: SRTPContext,
        _ sender: consuming SRTPSession,
        _ receiver: consuming SRTPSession
    ) {
        self.profile = profile
        self.context = context
        self.sender = sender
        self.receiver = receiver
    }

    /// Protects a packet; `prefix` bytes of its payload are given in place.
    mutating func protect(_ packet: [UInt8], roc: UInt64 = 0, prefix: Int = 0) -> [UInt8] {
        let header = Self.headerLength(packet)
        let split = min(header + prefix, packet.count)
        var output = Array(packet[..<split])
        output += Array(repeating: 0xee, count: packet.count - split + profile.rtpOverhead)
        let rest = Array(packet[split...])
        let index = roc << 16 | UInt64(packet[2]) << 8 | UInt64(packet[3])
        var span = output.mutableSpan
        do throws(SRTPError) {
            let length = try sender.protectRTP(
                &span,
                headerLength: header,
                prefixLength: split - header,
                rest: rest.span,
                index: index
            )
            context.finish()
            return Array(output[..<length])
        } catch {
            return []
        }
    }

    /// Begins to protect a packet in the batch's next slot.
    mutating func begin(_ packet: [UInt8], roc: UInt64, prefix: Int, into batch: inout Batch) {
        let header = Self.headerLength(packet)
        let split = min(header + prefix, packet.count)
        let rest = Array(packet[split...])
        var target = batch.next
        for index in 0..<split { target[index] = packet[index] }
        do throws(SRTPError) {
            let length = try sender.protectRTP(
                &target,
                headerLength: header,
                prefixLength: split - header,
                rest: rest.span,
                index: roc << 16 | UInt64(packet[2]) << 8 | UInt64(packet[3])
            )
            batch.commit(length: length, to: Self.path)
        } catch {}
    }

    private static let path = Path(remote: Address(ipv4: 0x0a00_0001, port: 1), local: 0)

    mutating func protectRTCP(_ packet: [UInt8]) -> [UInt8] {
        var output = packet + Array(repeating: 0xee, count: profile.rtcpOverhead)
        var span = output.mutableSpan
        do throws(SRTPError) {
            let length = try sender.protectRTCP(&span, length: packet.count)
            return Array(output[..<length])
        } catch {
            return []
        }
    }

    mutating func unprotect(_ packet: [UInt8]) -> Result<[UInt8], SRTPError> {
        var output = Array(repeating: 0xdd as UInt8, count: packet.count)
        var span = output.mutableSpan
        do throws(SRTPError) {
            let length = try receiver.unprotectRTP(packet.span, into: &span)
            return .success(Array(output[..<length]))
        } catch {
            return .failure(error)
        }
    }

    mutating func unprotectRTCP(_ packet: [UInt8]) -> Result<[UInt8], SRTPError> {
        var output = Array(repeating: 0xdd as UInt8, count: packet.count)
        var span = output.mutableSpan
        do throws(SRTPError) {
            let length = try receiver.unprotectRTCP(packet.span, into: &span)
            return .success(Array(output[..<length]))
        } catch {
            return .failure(error)
        }
    }

    private static func headerLength(_ packet: [UInt8]) -> Int {
        let fixed = 12 + 4 * Int(packet[0] & 15)
        guard packet[0] & 0x10 != 0 else { return fixed }
        return fixed + 4 + 4 * (Int(packet[fixed + 2]) << 8 | Int(packet[fixed + 3]))
    }
}

/// Makes a small RTP packet with a text payload.
func rtpPacket(_ sequence: UInt16, ssrc: UInt32 = 0xcafe_babe, payload: Int = 40) -> [UInt8] {
    var packet: [UInt8] = [0x80, 96]
    packet += [UInt8(sequence >> 8), UInt8(sequence & 0xff), 0, 0, 0, 1]
    packet += (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * $0)) }
    return packet + (0..<payload).map { UInt8(truncatingIfNeeded: $0 &+ Int(sequence)) }
}

/// Makes a receiver report without blocks, followed by some bytes.
func rtcpPacket(ssrc: UInt32 = 0xcafe_babe, words: Int = 3) -> [UInt8] {
    let packet: [UInt8] = [0x80, 201, 0, UInt8(1 + words)]
    return packet + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * $0)) }
        + (0..<4 * words).map { UInt8(truncatingIfNeeded: $0) }
}
