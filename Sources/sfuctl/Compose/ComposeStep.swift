/// One run of `ffmpeg`, whose result is kept until the file is complete.
struct ComposeStep: Equatable, Sendable {
    enum Kind: String, Sendable { case reel, part, sound }

    var kind: Kind
    /// Arguments of `ffmpeg` without the output file.
    var arguments: [String]
    /// Indexes of the plan's clips that it reads.
    var sources: [Int]
    /// Texts that it draws, by file name.
    var texts: [String: String] = [:]
    /// Length of the result, in seconds; `ffmpeg` reports progress in these.
    var seconds: Double
    /// Approximate cost, in seconds of a composed part of the default size.
    var cost: Double
    /// Name of the result in the working directory, derived from all that determines its content.
    var name: String
}

/// FNV-1a hash of 64 bits.
struct Fingerprint {
    private var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Adds a text and a terminator.
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

/// Formats seconds for `ffmpeg`, to the microsecond.
func ffmpegSeconds(_ seconds: Double) -> String {
    let microseconds = Int((seconds * 1_000_000).rounded())
    let fraction = String(microseconds.magnitude % 1_000_000)
    return (microseconds < 0 ? "-" : "") + "\(microseconds.magnitude / 1_000_000)."
        + String(repeating: "0", count: 6 - fraction.count) + fraction
}
