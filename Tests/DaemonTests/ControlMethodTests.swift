import Contract
import Foundation
import Testing

@testable import ControlPlane

/// The contract, the table of methods and the documentation have the same methods.
@Suite struct ControlMethodTests {
    /// Names of all methods of the contract, as its sources declare them.
    private static let contract: [String] = {
        let folder = URL(filePath: #filePath).appending(path: "../../../Sources/Contract")
            .standardized
        let files = FileManager.default.enumerator(atPath: folder.path)
        return (files?.compactMap { $0 as? String } ?? []).sorted().flatMap { name in
            let text = try? String(contentsOf: folder.appending(path: name), encoding: .utf8)
            return Self.methods(in: text ?? "")
        }
    }()

    /// Returns the names of the methods that a source declares; empty ones have none.
    private static func methods(in source: String) -> [String] {
        source.components(separatedBy: ": IPCMethod {").dropFirst().map { text in
            let words = text.components(separatedBy: "static let name = \"")
            return words.dropFirst().first.map { String($0.prefix { $0 != "\"" }) } ?? ""
        }
    }

    @Test func `the table has every method of the contract`() {
        #expect(Self.contract.count >= 57)
        #expect(Self.contract.sorted() == Method.table.keys.sorted())
    }

    @Test func `ipc.md has every method`() throws {
        let page = try DocumentationTests.page("ipc.md")
        for method in Self.contract { #expect(page.contains("\n## \(method)\n"), "\(method)") }
    }

    @Test func `a method is carried out by its name`() {
        for (name, method) in Method.table { #expect(method.name == name) }
    }
}
