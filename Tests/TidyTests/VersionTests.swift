import Foundation
import Testing

/// One file decides the version: programs and packages that name another would mislead whoever
/// reports a fault.
@Suite struct VersionTests {
    static let version = text("VERSION").trimmingCharacters(in: .newlines)

    /// Lines that name the version, with the file that has them.
    static let places = [
        ("Sources/Kernel/ProgramVersion.swift", "static let text = \"\(version)\""),
        ("gateway/pyproject.toml", "version = \"\(version)\""),
        ("gateway/sfud_gateway/__init__.py", "__version__ = \"\(version)\""),
        ("clients/python/pyproject.toml", "version = \"\(version)\""),
        ("clients/js/package.json", "\"version\": \"\(version)\""),
    ]

    @Test func `the version has three numbers and one line`() {
        let numbers = Self.version.split(separator: ".", omittingEmptySubsequences: false)
        #expect(numbers.count == 3)
        #expect(numbers.allSatisfy { UInt16($0) != nil })
        #expect(Self.text("VERSION") == Self.version + "\n")
    }

    @Test(arguments: places)
    func `programs and packages have the version of VERSION`(_ path: String, _ line: String) {
        #expect(Self.text(path).contains(line), "\(path) does not say \(line)")
    }

    /// The first heading may be of what is not released yet; the first version is the current one.
    @Test func `the changelog begins with the version`() {
        let headings = Self.text("CHANGELOG.md").split(separator: "\n").filter {
            $0.hasPrefix("## ") && $0 != "## Unreleased"
        }
        #expect(headings.first?.hasPrefix("## \(Self.version)") == true)
    }

    /// Returns the text of a file of the package, or nothing if it cannot be read.
    private static func text(_ path: String) -> String {
        let package = URL(filePath: #filePath).appending(path: "../../..").standardized
        return (try? String(contentsOf: package.appending(path: path), encoding: .utf8)) ?? ""
    }
}
