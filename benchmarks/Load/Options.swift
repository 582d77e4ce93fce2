import SFU
import SFUClient

/// A command line that makes no sense, in one line that says why.
struct UsageError: Error { var message: String }

/// What the command line asked for.
struct Options: Sendable {
    /// sfud's IPC socket.
    var path = IPCPath.standard
    var room = "load-\(UInt32.random(in: 0...UInt32.max))"
    var viewers = 50
    var seconds = 60
    /// Bits a second of video payload.
    var videoBitrate = 1_500_000
    /// Frames a second.
    var frameRate = 30
    /// Of the video packets, thrown away on purpose.
    var lossPercent = 0
    var profiles = DTLSIdentity.profiles
    /// sfud's process, whose CPU time is read.
    var pid: Int32?
    /// Decrypt everything, and fail when anything is wrong.
    var checks = false
    var wantsHelp = false

    static let help = """
        sfu-load: one publisher and many viewers on a running sfud, over loopback

        The publisher sends Opus (50 packets a second) and VP8, the viewers check what they get:
        numbering, timestamps, picture ids, contents, latency. It speaks real ICE, DTLS and SRTP.

          --ipc PATH           sfud's socket (default: \(IPCPath.standard))
          --room NAME          the room to make and close (default: a name of its own)
          --viewers N          1 to 1000 (default 50)
          --seconds N          how long to measure, 1 to 3600 (default 60)
          --video-bitrate N    bits a second, 50000 to 20000000 (default 1500000)
          --frame-rate N       frames a second, 1 to 120 (default 30)
          --lose N             throw away N % of the video packets, 0 to 50, unsent, so that
                               sfud has to ask for them again (default 0)
          --profile P          SRTP by gcm (AEAD_AES_128_GCM, the default) or by cm
                               (AES_CM_128_HMAC_SHA1_80)
          --pid PID            sfud's process, to tell its CPU time
          --check              decrypt every packet, not one in 64, and exit with 1 if anything
                               was lost, undecryptable or discontinuous
          --help               print this

        sfud must offer a loopback candidate: sfud --udp 127.0.0.1:5004.
        Exit status: 0 done, 1 a check failed, 2 wrong command line, 69 sfud refused or is not
        there, 130 interrupted.
        """

    /// Reads the arguments, the program's name left out.
    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let flag = rest.popFirst() {
            switch flag {
            case "--help", "-h": wantsHelp = true
            case "--check": checks = true
            default: try read(flag, rest.popFirst())
            }
        }
    }

    private mutating func read(_ flag: String, _ value: String?) throws(UsageError) {
        switch flag {
        case "--ipc": path = try Self.text(flag, value)
        case "--room":
            room = try Self.text(flag, value)
            guard RoomID(rawValue: room) != nil else {
                throw UsageError(message: "--room: 1 to 128 of A-Z a-z 0-9 . _ : -")
            }
        case "--viewers": viewers = try Self.number(flag, value, 1...1_000)
        case "--seconds": seconds = try Self.number(flag, value, 1...3_600)
        case "--video-bitrate": videoBitrate = try Self.number(flag, value, 50_000...20_000_000)
        case "--frame-rate": frameRate = try Self.number(flag, value, 1...120)
        case "--lose": lossPercent = try Self.number(flag, value, 0...50)
        case "--pid": pid = Int32(try Self.number(flag, value, 1...Int(Int32.max)))
        case "--profile":
            switch try Self.text(flag, value) {
            case "gcm": profiles = [.aeadAes128Gcm]
            case "cm": profiles = [.aes128CmSha1_80]
            default: throw UsageError(message: "--profile must be gcm or cm")
            }
        default: throw UsageError(message: "no such option: \(flag)")
        }
    }

    private static func text(_ flag: String, _ value: String?) throws(UsageError) -> String {
        guard let value else { throw UsageError(message: "\(flag) needs a value") }
        return value
    }

    private static func number(
        _ flag: String,
        _ value: String?,
        _ range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        guard let number = Int(try text(flag, value)), range.contains(number) else {
            throw UsageError(
                message: "\(flag) must be \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }
}
