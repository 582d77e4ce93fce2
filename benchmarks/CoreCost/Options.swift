import SFU

#if canImport(Glibc)
    import Glibc
#endif

/// What the command line asked for.
struct Options {
    var viewers = 50
    var packets = 20_000
    var engine = SRTPEngine.best
    /// The viewers are another worker's, which the publisher's hands packets to.
    var relays = false
    var checks = false
    var wantsHelp = false

    static let help = """
        core-cost: what one forwarded packet costs in sfud's core, without sockets

          --viewers N    subscribers of the one publisher (default 50)
          --packets N    packets that the publisher sends (default 20000)
          --engine E     libsrtp2 or ipsec-mb (default: the fastest of this machine)
          --relay        the viewers are on another worker, behind a ring
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
            case "--engine": engine = SRTPEngine(rawValue: value) ?? engine
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
    }
}

func exitWithFailure() -> Never { exit(1) }
