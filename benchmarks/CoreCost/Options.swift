import SFU

#if canImport(Glibc)
    import Glibc
#endif

/// What the command line asked for.
struct Options {
    var shape = Shape.livestream
    var profiles = DTLSIdentity.profiles
    var viewers = 50
    var packets = 20_000
    var engine = SRTPEngine.best
    var checks = false
    var wantsHelp = false

    static let help = """
        core-cost: what one forwarded packet costs in sfud's core, without sockets

          --shape S      livestream: one publisher, a batch is a frame of 6 packets (default);
                         meeting: each viewer publishes too, a batch has 2 packets of each
          --viewers N    subscribers (default 50), in a meeting 2 to 30
          --packets N    packets that are published (default 20000)
          --profile P    SRTP by gcm (AEAD_AES_128_GCM, the default) or by cm
                         (AES_CM_128_HMAC_SHA1_80)
          --engine E     libsrtp2 or ipsec-mb (default: the fastest of this machine)
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
            case "--packets": packets = max(1, Int(value) ?? packets)
            case "--shape": shape = Shape(rawValue: value) ?? shape
            case "--profile":
                profiles = value == "cm" ? [.aes128CmSha1_80] : [.aeadAes128Gcm]
            case "--engine": engine = SRTPEngine(rawValue: value) ?? engine
            case "--check":
                checks = true
                index -= 1
            default:
                wantsHelp = true
                index -= 1
            }
            index += 2
        }
        // What all of them send together has to fit into the batch.
        if shape == .meeting { viewers = min(max(viewers, 2), 30) }
    }
}

func exitWithFailure() -> Never { exit(1) }
