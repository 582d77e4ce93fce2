import Contract
import SFUClient

/// Command-line options of `sfu-bench load`.
struct LoadOptions: Sendable {
    /// sfud's IPC socket.
    var path = IPCPath.standard
    /// Sockets of other nodes where the viewers join by turns; none: at `path`.
    var viewersPaths: [String] = []
    var room = "load-\(UInt32.random(in: 0...UInt32.max))"
    var viewers = 50
    /// Viewers who join at once when the media runs.
    var lateViewers = 0
    /// Whether viewers go to another node when sfud asks them to.
    var followsMoves = false
    var seconds = 60
    /// Whether the measurement ends with standard input, if that is earlier.
    var endsWithInput = false
    /// Seconds of media before the measurement, which exclude the start-up.
    var settleSeconds = 2
    /// Video packets that are not sent on purpose, in percent.
    var lossPercent = 0
    var profile = BenchProfile.gcm
    /// Process id of sfud, for its CPU time.
    var pid: Int32?
    /// Whether the publisher sends a screen share instead of a camera.
    var isScreen = false
    /// Whether every packet is decrypted, and any fault fails the run.
    var checks = false
    var wantsHelp = false

    static let help = """
        sfu-bench load: one publisher and many viewers on a running sfud, over loopback

        The publisher sends Opus (50 packets a second) and VP8 (1.5 Mbit/s), the viewers check
        what they get: numbering, timestamps, picture ids, contents, latency; one decodes.

          --ipc PATH           sfud's socket (default: \(IPCPath.standard))
          --viewers-ipc PATH   the socket of another node of sfud's cluster, where the viewers
                               join; may be repeated, then they join by turns
          --room NAME          the room to make and close (default: a name of its own)
          --viewers N          1 to 5000 (default 50)
          --late N             further viewers, who join at once after these, 0 to 5000 (default 0);
                               what they get is not counted, and the report has no CPU time and no
                               counters of sfud then
          --follow-moves       make a second connection for viewers whom sfud asks to move, and
                               tell how long they had no sound; the report has no more than that
          --seconds N          how long to measure, 1 to 3600 (default 60)
          --until-input-ends   measure until standard input ends, if that is earlier
          --settle N           seconds of media before these, 0 to 60 (default 2)
          --screen             a screen share of 5 Mbit/s, without audio
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

    /// Parses the arguments after `load`.
    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let flag = rest.popFirst() {
            switch flag {
            case "--help", "-h": wantsHelp = true
            case "--check": checks = true
            case "--screen": isScreen = true
            case "--until-input-ends": endsWithInput = true
            case "--follow-moves": followsMoves = true
            default: try read(flag, rest.popFirst())
            }
        }
    }

    private mutating func read(_ flag: String, _ value: String?) throws(UsageError) {
        switch flag {
        case "--ipc": path = try CommandLineValue.text(flag, value)
        case "--viewers-ipc": viewersPaths.append(try CommandLineValue.text(flag, value))
        case "--room":
            room = try CommandLineValue.text(flag, value)
            guard RoomID(rawValue: room) != nil else {
                throw UsageError(message: "--room: 1 to 128 of A-Z a-z 0-9 . _ : -")
            }
        case "--viewers": viewers = try CommandLineValue.number(flag, value, 1...5_000)
        case "--late": lateViewers = try CommandLineValue.number(flag, value, 0...5_000)
        case "--seconds": seconds = try CommandLineValue.number(flag, value, 1...3_600)
        case "--settle": settleSeconds = try CommandLineValue.number(flag, value, 0...60)
        case "--lose": lossPercent = try CommandLineValue.number(flag, value, 0...50)
        case "--pid":
            pid = Int32(try CommandLineValue.number(flag, value, 1...Int(Int32.max)))
        case "--profile": profile = try CommandLineValue.profile(flag, value)
        default: throw UsageError(message: "no such option: \(flag)")
        }
    }
}
