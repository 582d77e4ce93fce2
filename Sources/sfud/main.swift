import Daemon
import Foundation

// Not `exit`: OpenSSL's exit handler would free memory that an ending worker thread also frees.
// There is no buffered output to flush.
_exit(Daemon.main(Array(CommandLine.arguments.dropFirst())))
