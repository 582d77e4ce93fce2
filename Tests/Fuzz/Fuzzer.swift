import CFuzzer
import FuzzTargets
import Glibc

/// Runs libFuzzer over one target: `sfud-fuzz --target=NAME [libFuzzer options]`.
///
/// libFuzzer ignores flags with two dashes, and passes them on when it restarts itself.
@main
enum Fuzzer {
    private static let flag = "--target="
    private static let target = CommandLine.arguments.first { $0.hasPrefix(flag) }
        .flatMap { FuzzTarget(rawValue: String($0.dropFirst(flag.count))) }

    static func main() {
        guard target != nil else {
            print(FuzzTarget.allCases.map(\.rawValue).joined(separator: "\n"))
            exit(CommandLine.arguments.dropFirst() == ["--targets"] ? 0 : 2)
        }
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? =
            unsafe CommandLine.unsafeArgv
        let status = unsafe fuzzer_run(&count, &arguments) { bytes, count in
            Fuzzer.run(unsafe Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        }
        exit(status)
    }

    private static func run(_ input: [UInt8]) {
        do throws(Violation) {
            _ = try target?.run(input)
        } catch {
            fatalError("\(error)")
        }
    }
}
