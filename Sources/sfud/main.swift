import Daemon
import Foundation

// Not `exit`: OpenSSL's exit handler would free what a worker thread that is just ending frees too.
// Nothing is buffered that it would have to write.
_exit(Daemon.main(Array(CommandLine.arguments.dropFirst())))
