import COpus
import Foundation
import Testing

/// Player of a received Opus stream, at 48 kHz and in one channel.
@safe
struct OpusListener: ~Copyable {
    private let decoder: OpaquePointer

    init() throws {
        var error: Int32 = 0
        unsafe decoder = try #require(unsafe opus_decoder_create(48_000, 1, &error))
    }

    deinit { unsafe opus_decoder_destroy(decoder) }

    /// Plays 20 ms; `nil` is silence that was not sent, or a loss.
    func play(_ packet: [UInt8]?) -> [Int16] {
        var samples = [Int16](repeating: 0, count: 960)
        let count =
            if let packet {
                unsafe opus_decode(decoder, packet, Int32(packet.count), &samples, 960, 0)
            } else {
                unsafe opus_decode(decoder, nil, 0, &samples, 960, 0)
            }
        return count == 960 ? samples : []
    }

    /// Returns the loudness of each 5 ms, in dB of full scale.
    static func loudness(_ samples: [Int16]) -> [Double] {
        stride(from: 0, to: samples.count - 239, by: 240).map { start in
            let power = samples[start..<start + 240].reduce(0.0) { $0 + Double($1) * Double($1) }
            return 10 * log10(max(power / 240 / (32_768 * 32_768), 1e-12))
        }
    }
}
