/// One run of `ffmpeg`, whose result is kept until the whole is done.
struct ComposeStep: Equatable, Sendable {
    enum Kind: String, Sendable { case reel, part, sound }

    var kind: Kind
    /// What `ffmpeg` is given, but for the file it writes.
    var arguments: [String]
    /// Which of the plan's clips it reads.
    var sources: [Int]
    /// The texts it draws, by the names of their files.
    var texts: [String: String] = [:]
    /// How much it makes, in seconds: its progress is told in these.
    var seconds: Double
    /// How long it takes, in seconds of a composed part of the usual size; roughly.
    var cost: Double
    /// The name of what it makes, in the working directory; made of all that decides its content.
    var name: String
}

/// A number that stands for all bytes put into it (FNV-1a, 64 bits).
struct Fingerprint {
    private var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Takes a text in, and where it ends.
    mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(0xff)
    }

    private mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }

    var text: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// Seconds as `ffmpeg` takes them, to the microsecond.
func ffmpegSeconds(_ seconds: Double) -> String {
    let microseconds = Int((seconds * 1_000_000).rounded())
    let fraction = String(microseconds.magnitude % 1_000_000)
    return (microseconds < 0 ? "-" : "") + "\(microseconds.magnitude / 1_000_000)."
        + String(repeating: "0", count: 6 - fraction.count) + fraction
}
