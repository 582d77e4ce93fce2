import CCounting
import LoadPeer
import RTP
import SFU

// What one forwarded packet costs in the core: time, allocations, retains, locks.
//
// Usage: core-cost [--shape livestream|meeting] [--viewers N] [--packets N] [--profile gcm|cm]
//            [--engine libsrtp2|ipsec-mb] [--check]
// With --check it exits with 1 where anything but zero was counted.

let options = Options(CommandLine.arguments)
if options.wantsHelp {
    print(Options.help)
} else {
    let cost = try CoreCost.measure(options)
    print(cost.description)
    if options.checks, !cost.isClean {
        print("the packet path must not allocate, retain or lock")
        exitWithFailure()
    }
}
