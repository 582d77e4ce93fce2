import LiveStream
import RTP
import Testing

@Suite struct AudioMixerTests {
    static let origin = Instant(nanoseconds: 5_000_000_000)

    private func packet(_ level: Float, milliseconds: Int = 20) -> [Float] {
        [Float](repeating: level, count: milliseconds * 48 * 2)
    }

    private func instant(_ milliseconds: Int64) -> Instant {
        Self.origin.advanced(milliseconds: milliseconds)
    }

    @Test func `without tracks the mix is silence`() {
        var mixer = AudioMixer(origin: Self.origin)
        #expect(mixer.take(480) == [Float](repeating: 0, count: 960))
    }

    @Test func `each sample is heard at its time, and tracks are added up`() {
        var mixer = AudioMixer(origin: Self.origin)
        mixer.add(packet(0.25), of: 1, at: instant(10))
        mixer.add(packet(0.125), of: 2, at: instant(20))
        let sound = Array(mixer.take(48 * 50)[..<(48 * 50)])
        #expect(sound[..<480].allSatisfy { $0 == 0 })
        #expect(sound[480..<960].allSatisfy { $0 == 0.25 })
        #expect(sound[960..<1_440].allSatisfy { $0 == 0.375 })
        #expect(sound[1_440..<1_920].allSatisfy { $0 == 0.125 })
        #expect(sound[1_920...].allSatisfy { $0 == 0 })
    }

    @Test func `left and right stay apart`() {
        var mixer = AudioMixer(origin: Self.origin)
        mixer.add([0.1, 0.5, 0.2, 0.6], of: 1, at: instant(0))
        #expect(mixer.take(2) == [0.1, 0.2, 0.5, 0.6])
    }

    @Test func `slight drift leaves no gap`() {
        var mixer = AudioMixer(origin: Self.origin)
        for number in 0..<10 {
            let drift = Int64(number % 3) - 1
            mixer.add(packet(0.5), of: 1, at: instant(Int64(number) * 20 + drift))
        }
        let sound = mixer.take(48 * 200)[..<(48 * 190)]
        #expect(sound.dropFirst(48).allSatisfy { $0 == 0.5 })
    }

    @Test func `late audio and audio far ahead are dropped`() {
        var mixer = AudioMixer(origin: Self.origin)
        _ = mixer.take(48 * 100)
        mixer.add(packet(0.5), of: 1, at: instant(0))
        mixer.add(packet(0.5), of: 2, at: instant(100 + 2_000))
        #expect(mixer.take(48 * 2_100).allSatisfy { $0 == 0 })
    }

    @Test func `a track that is forgotten is not heard`() {
        var mixer = AudioMixer(origin: Self.origin)
        mixer.add(packet(0.5), of: 1, at: instant(0))
        mixer.forget(1)
        #expect(mixer.take(960).allSatisfy { $0 == 0 })
    }

    @Test func `many loud voices stay within bounds`() {
        var mixer = AudioMixer(origin: Self.origin)
        for track in 0..<8 as Range<UInt32> { mixer.add(packet(0.9), of: track, at: instant(0)) }
        let sound = mixer.take(960)
        #expect(sound.allSatisfy { $0 > 0.9 && $0 < 1 })
    }

    @Test func `tracks have a limit`() {
        var mixer = AudioMixer(origin: Self.origin)
        for track in 0..<UInt32(AudioMixer.trackLimit) {
            mixer.add([0, 0], of: track, at: instant(0))
        }
        mixer.add(packet(0.5), of: 1_000, at: instant(0))
        #expect(mixer.take(960).allSatisfy { $0 == 0 })
    }

    static let times: [Int64] = [.min, .max, .min + 1, -year, year, 6_000_000_000]
    private static let year: Int64 = 365 * 86_400 * 1_000_000_000

    @Test(arguments: times)
    func `A4 sound of any time is left out or heard, and others go on`(nanoseconds: Int64) {
        var mixer = AudioMixer(origin: Self.origin)
        for step in 0..<10 as Range<Int64> {
            let sound = packet(0.5)
            mixer.add(sound, of: 1, at: Instant(nanoseconds: nanoseconds &+ step &* 20_000_000))
            mixer.add(packet(0.25), of: 2, at: instant(step * 20))
            // The order does not matter: the ring restarts each time.
            mixer.add(sound, of: 3, at: Instant(nanoseconds: step % 2 == 0 ? nanoseconds : 0))
        }
        #expect(mixer.take(48 * 200)[..<(48 * 200)].allSatisfy { $0 == 0.25 })
    }
}
