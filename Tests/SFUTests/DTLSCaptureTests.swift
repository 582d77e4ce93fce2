import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// ClientHellos of real clients, where the capture is available.
@Suite("DTLS captures", .enabled(if: DTLSCapture.shared != nil))
struct DTLSCaptureTests {
    @Test func `every real client's hello gets a flight`() throws {
        let capture = try #require(DTLSCapture.shared)
        let hellos = capture.hellos()
        #expect(hellos.count >= 4)
        #expect(hellos.contains { $0.count > 1 })
        let identity = try DTLSIdentity()
        let nobody = Fingerprint(algorithm: .sha256, digest: Array(repeating: 0, count: 32))
        for hello in hellos {
            let now = Instant(nanoseconds: 0)
            var server = try DTLSAssociation(
                identity: identity,
                role: .server,
                fingerprints: [nobody],
                at: now
            )
            for datagram in hello { _ = server.receive(datagram.span, at: now) }
            let takenFlight = takeDatagram(&server)
            let flight = try #require(takenFlight, "\(hello.map(\.count))")
            // A handshake record with a ServerHello.
            #expect(flight[0] == 22 && flight[13] == 2)
            #expect(flight.count <= DTLSAssociation.maxDatagram)
        }
    }
}

/// A pcapng file of handshakes.
struct DTLSCapture: Sendable {
    private let bytes: [UInt8]

    static let shared = Samples.files("sdp").first { $0.name == "dtls-handshakes.pcap" }
        .map { DTLSCapture(bytes: $0.bytes) }

    /// Returns the datagrams of each ClientHello, which may be fragmented.
    func hellos() -> [[[UInt8]]] {
        var result: [[[UInt8]]] = []
        var open: [UInt16: [[UInt8]]] = [:]
        for (port, datagram) in datagrams() {
            guard datagram.count > 25, datagram[0] == 22, datagram[13] == 1,
                datagram[3...4] == [0, 0]
            else { continue }
            let span = datagram.span
            // A retransmitted ClientHello is not counted again, nor is one with a cookie.
            guard span.u16(at: 17) == 0 else { continue }
            let isFirst = span.u24(at: 19) == 0
            if !isFirst && open[port] == nil { continue }
            open[port, default: []].append(datagram)
            if reaches(span) { result.append(open.removeValue(forKey: port) ?? []) }
        }
        return result
    }

    /// Whether the last of the datagram's records ends the ClientHello.
    private func reaches(_ datagram: Span<UInt8>) -> Bool {
        var start = 0
        while start + 25 <= datagram.count {
            let offset = datagram.u24(at: start + 19)
            let length = datagram.u24(at: start + 22)
            if offset + length == datagram.u24(at: start + 14) { return true }
            start += 13 + Int(datagram.u16(at: start + 11))
        }
        return false
    }

    /// Returns the payload of each UDP packet over IPv4, with its source port.
    private func datagrams() -> [(UInt16, [UInt8])] {
        var result: [(UInt16, [UInt8])] = []
        var start = 0
        while start + 12 <= bytes.count {
            let kind = littleEndian(start)
            let length = Int(littleEndian(start + 4))
            guard length >= 12, start + length <= bytes.count else { break }
            if kind == 6 {
                let size = Int(littleEndian(start + 20))
                let frame = Array(bytes[start + 28..<min(start + 28 + size, start + length)])
                if let datagram = udp(frame) { result.append(datagram) }
            }
            start += length
        }
        return result
    }

    private func udp(_ frame: [UInt8]) -> (UInt16, [UInt8])? {
        // Ethernet, as on Linux's loopback; IPv4 without options; UDP.
        guard frame.count > 42, frame[12] == 8, frame[13] == 0, frame[14] == 0x45, frame[23] == 17
        else { return nil }
        let port = UInt16(frame[34]) << 8 | UInt16(frame[35])
        let length = Int(frame[38]) << 8 | Int(frame[39])
        guard length >= 8, 34 + length <= frame.count else { return nil }
        return (port, Array(frame[42..<34 + length]))
    }

    private func littleEndian(_ offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32(8 * $1) }
    }
}
