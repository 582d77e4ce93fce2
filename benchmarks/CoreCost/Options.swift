import SFU

#if canImport(Glibc)
    import Glibc
#endif

/// Command-line options.
struct Options {
    var viewers = 50
    var publications = 1
    var packets = 20_000
    var burst = 8
    var engine = SRTPEngine.best
    var profile = SRTPProfile.aeadAes128Gcm
    /// Small rooms with cameras, their people, and the layers of each camera; 0 rooms for none.
    var rooms = 0
    var people = 2
    var layers = 1
    /// Clients whose packets form one batch.
    var together = 1
    /// Whether the viewers are on another worker, which gets the packets over a relay.
    var relays = false
    var checks = false
    var measuresSRTP = false
    var measuresHostility = false
    /// Participants of a room of microphones, and of another for comparison; 0 for none.
    var room = 0
    var against = 0
    var talkers = 10
    var isRealOpus = false
    var wantsHelp = false

    static let help = """
        core-cost: what one forwarded packet costs in sfud's core, without sockets

          --viewers N    subscribers of the one publisher (default 50)
          --publications N  videos that the publisher sends; each viewer gets all (default 1)
          --packets N    packets of each video (default 20000)
          --burst N      packets of each video in one batch: a frame (default 8)
          --engine E     libsrtp2 or ipsec-mb (default: the fastest of this machine)
          --profile P    gcm (AEAD_AES_128_GCM, default), gcm256, or cm
                         (AES_CM_128_HMAC_SHA1_80)
          --relay        the viewers are on another worker, behind a ring
          --rooms N      what N rooms cost in which everybody has a camera and sees the
                         others, timers included; --packets are steps of 100 ms, and
                         --burst the packets of a frame
          --people N     in rooms of so many (default 2)
          --layers N     with cameras of so many layers, of which one is seen (default 1)
          --together N   with so many clients' packets in a batch (default 1)
          --srtp         only what SRTP costs: ns a packet of each profile, some sizes
                         and batches
          --hostile      only what wrong datagrams cost, beside ten thousand transports
          --room N       what a room of N microphones costs, whose people follow the six
                         who talked last; --packets are those of each, and --burst
                         how many of all come together
          --against N    and what one of N does, by turns, and the ratio
          --talkers N    how many of a room talk (default 10)
          --opus         the room's microphones send real Opus without levels
          --check        exit with 1 unless allocations, retains and locks are 0
                         (with libsrtp2 only retains count: the others are its own)
          --help         this text
        """

    init(_ arguments: [String]) {
        var index = 1
        while index < arguments.count {
            let value = index + 1 < arguments.count ? arguments[index + 1] : ""
            switch arguments[index] {
            case "--viewers": viewers = max(1, Int(value) ?? viewers)
            case "--publications": publications = min(max(1, Int(value) ?? 1), 16)
            case "--burst": burst = max(1, Int(value) ?? burst)
            case "--packets": packets = max(1, Int(value) ?? packets)
            case "--rooms": rooms = min(max(1, Int(value) ?? 1), 1_000)
            case "--people": people = min(max(2, Int(value) ?? 2), 10)
            case "--layers": layers = min(max(1, Int(value) ?? 1), 3)
            case "--together": together = min(max(1, Int(value) ?? 1), 16)
            case "--engine": engine = SRTPEngine(rawValue: value) ?? engine
            case "--profile": profile = Self.profiles[value] ?? profile
            case "--srtp":
                measuresSRTP = true
                index -= 1
            case "--hostile":
                measuresHostility = true
                index -= 1
            case "--room": room = min(max(1, Int(value) ?? 1), 4_000)
            case "--against": against = min(max(0, Int(value) ?? 0), 4_000)
            case "--talkers": talkers = max(0, Int(value) ?? talkers)
            case "--opus":
                isRealOpus = true
                index -= 1
            case "--relay":
                relays = true
                index -= 1
            case "--check":
                checks = true
                index -= 1
            default:
                wantsHelp = true
                index -= 1
            }
            index += 2
        }
        // Limited by the capacity of a batch.
        burst = min(burst, Core.batchCapacity / publications)
    }

    private static let profiles: [String: SRTPProfile] = [
        "gcm": .aeadAes128Gcm, "gcm256": .aeadAes256Gcm, "cm": .aes128CmSha1_80,
    ]
}

func exitWithFailure() -> Never { exit(1) }
