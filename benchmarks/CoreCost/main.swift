import CCounting
import LoadPeer
import RTP

// Cost of one forwarded packet in the core: time, allocations, retains, locks.
//
// `core-cost --help` lists the options; with --check it exits with 1 if any forbidden operation was
// counted.

let options = Options(CommandLine.arguments)
if options.wantsHelp {
    print(Options.help)
} else if options.measuresSRTP {
    try SRTPCost.report(options.engine)
} else if options.measuresHostility {
    try HostileCost.report(options)
} else if options.rooms > 0 {
    let isClean = try GroupCost.report(options)
    if options.checks, !isClean {
        print("the packet path must not retain")
        exitWithFailure()
    }
} else if options.room > 0 {
    try RoomCost.report(options)
} else {
    let cost = try CoreCost.measure(options)
    print(cost.description)
    if options.checks, !cost.isClean {
        print("the packet path must not allocate, retain or lock")
        exitWithFailure()
    }
}
