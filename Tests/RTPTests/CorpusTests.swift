import TestSupport
import Testing

@testable import RTP

/// Captures of real senders; without the files the tests do nothing.
@Suite struct CorpusTests {
    /// Returns the payloads of a capture's RTP packets.
    private func payloads(_ name: String) -> [[UInt8]] {
        Samples.datagrams(capture: name).compactMap { datagram in
            guard case .rtp = Datagram(datagram.span) else { return nil }
            do throws(PacketError) {
                return try Packet(datagram.span).payload.array
            } catch {
                Issue.record("not a packet: \(error)")
                return nil
            }
        }
    }

    @Test func `reads VP8 of a real sender`() {
        let payloads = payloads("vp8.pcap").filter { !$0.isEmpty }
        guard !payloads.isEmpty else { return }
        let descriptors = payloads.compactMap { VP8Descriptor($0) }
        #expect(descriptors.count == payloads.count)
        let sizes = payloads.compactMap { payload in
            VP8Descriptor(payload)?.resolution(payload)
        }
        #expect(!sizes.isEmpty)
        #expect(sizes.allSatisfy { $0.width >= 64 && $0.width <= 1920 })
        expectSteps(descriptors.compactMap(\.pictureID))
    }

    @Test(arguments: ["vp9.pcap", "contiguous_vp9.pcap"])
    func `reads VP9 of a real sender`(name: String) {
        let payloads = payloads(name).filter { !$0.isEmpty }
        guard !payloads.isEmpty else { return }
        let descriptors = payloads.compactMap { VP9Descriptor($0) }
        #expect(descriptors.count == payloads.count)
        expectSteps(descriptors.compactMap(\.pictureID))
    }

    @Test func `reads H.264 of a real sender`() {
        let payloads = payloads("h264.pcap").filter { !$0.isEmpty }
        guard !payloads.isEmpty else { return }
        #expect(payloads.contains { H264Payload.isKeyframeStart($0) })
        #expect(payloads.contains { !H264Payload.isKeyframeStart($0) })
        let sizes = payloads.compactMap { H264Payload.resolution($0) }
        #expect(!sizes.isEmpty)
        #expect(sizes.allSatisfy { $0.width >= 64 && $0.width <= 1920 })
    }

    @Test func `reads AV1 of a real sender`() {
        let payloads = payloads("av1.pcap").filter { !$0.isEmpty }
        guard !payloads.isEmpty else { return }
        let headers = payloads.compactMap { AV1AggregationHeader($0) }
        #expect(headers.count == payloads.count)
        #expect(headers.contains { $0.isKeyframeStart })
        #expect(headers.contains { !$0.isKeyframeStart })
    }

    /// Expects the picture ids of one stream to stay or go up by one (apart from losses).
    private func expectSteps(_ ids: [UInt16]) {
        guard !ids.isEmpty else { return }
        let steps = zip(ids, ids.dropFirst()).filter { $1 == $0 || $1 == ($0 + 1) & 0x7fff }
        #expect(steps.count * 10 >= (ids.count - 1) * 9)
    }
}
