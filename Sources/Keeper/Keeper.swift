import CKernel
import Glibc
import Kernel

/// Parent that starts sfud again when it dies, and keeps its descriptors meanwhile
/// (`sfud --keeper`).
///
/// It speaks the protocol of systemd (sd_notify(3), sd_listen_fds(3)), so that the daemon does the
/// same under both.
package enum Keeper {
    /// First argument of a keeper's command line; the others are the daemon's.
    package static let argument = "--keeper"

    /// Keeps the daemon with these arguments running; returns the exit status when it has ended for
    /// good.
    ///
    /// `command` is the first word of the keeper's own command line.
    package static func main(_ arguments: [String], command: String) -> Int32 {
        kernel_fill_standard_descriptors()
        kernel_forbid_core_dumps()
        var arguments = arguments[...]
        if arguments.first == "--" { arguments.removeFirst() }
        guard arguments.first != argument else {
            return fail("keeper: --keeper is given twice", usageStatus)
        }
        do throws(SystemError) {
            var supervisor = try Supervisor(command: command, arguments: Array(arguments))
            return supervisor.run()
        } catch {
            return fail("keeper: \(error)", systemStatus)
        }
    }

    private static func fail(_ reason: String, _ status: Int32) -> Int32 {
        _ = kernel_write(2, Array("sfud: \(reason)\n".utf8).span)
        return status
    }

    static let usageStatus: Int32 = 78
    static let systemStatus: Int32 = 71
}
