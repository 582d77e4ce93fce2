internal import CKernel
import Glibc

/// Path of a program's file.
package enum ProgramPath {
    /// Returns the absolute path of the program that a command line names, or `nil` if there is
    /// none.
    ///
    /// Links are not resolved, so the path stays valid when the file is replaced. A name without a
    /// slash is searched for in `path`, as a shell does.
    package static func find(_ command: String, path: String?, directory: String) -> String? {
        let places: [String]
        if command.utf8.contains(UInt8(ascii: "/")) {
            places = [command]
        } else {
            places = (path ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").map {
                "\($0)/\(command)"
            }
        }
        return places.map { $0.hasPrefix("/") ? $0 : "\(directory)/\($0)" }.first(where: isProgram)
    }

    /// Returns the path of this process's program.
    ///
    /// It is that of its command line, or of the file that the kernel executed if the command line
    /// names none.
    package static func own(_ command: String) -> String? {
        find(command, path: ProcessEnvironment["PATH"], directory: workingDirectory())
            ?? link("/proc/self/exe")
    }

    private static func isProgram(_ path: String) -> Bool {
        var facts = kernel_program()
        return unsafe kernel_program_facts(path, &facts) == 0 && facts.regular && facts.executable
    }

    private static func workingDirectory() -> String { link("/proc/self/cwd") ?? "/" }

    private static func link(_ path: String) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let capacity = target.count
        let count = unsafe target.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return 0 }
            return unsafe readlink(path, start, capacity)
        }
        return count > 0 ? String(decoding: target.prefix(count), as: UTF8.self) : nil
    }
}
