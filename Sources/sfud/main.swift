import Daemon
import Foundation
import Keeper

let arguments = Array(CommandLine.arguments.dropFirst())
// Not `exit`: OpenSSL's exit handler would free memory that an ending worker thread also frees.
// There is no buffered output to flush.
if arguments.first == Keeper.argument {
    _exit(Keeper.main(Array(arguments.dropFirst()), command: CommandLine.arguments[0]))
}
_exit(Daemon.main(arguments))
