import Contract
import Foundation
import JSON
import Testing

@testable import ControlPlane

/// `server.describe` and `docs/openrpc.json` are what the contract's types say.
///
/// With `SFUD_UPDATE=1` the tests write the files that they compare, as `make bindings` does.
@Suite struct ContractDocumentTests {
    private static let package = URL(filePath: #filePath).appending(path: "../../..").standardized
    private static let sources = package.appending(path: "Sources/Contract")
    private static let isUpdating = ProcessInfo.processInfo.environment["SFUD_UPDATE"] != nil
    private static let comments = ContractComments(under: sources).texts
    /// The document with the comments as they are now, which may be newer than the compiled ones.
    private static let document =
        ContractDocument(methods: Method.contracts, texts: comments).json

    /// Compares a file with what it should be, or writes it.
    private func expect(_ path: String, is text: String) throws {
        let file = Self.package.appending(path: path)
        if Self.isUpdating { try text.write(to: file, atomically: true, encoding: .utf8) }
        let found = try? String(contentsOf: file, encoding: .utf8)
        #expect(found == text, "\(path) is out of date: run `make bindings`")
    }

    @Test func `the table of texts has the doc comments of the contract`() throws {
        let comments = ContractComments(under: Self.sources)
        try expect("Sources/Contract/Schema/ContractTexts.swift", is: comments.source)
        if !Self.isUpdating { #expect(ContractTexts.all == comments.texts) }
    }

    @Test func `openrpc.json is the document`() throws {
        try expect("docs/openrpc.json", is: Self.pretty(Self.document) + "\n")
    }

    @Test(.enabled(if: !isUpdating)) func `server.describe returns the document`() throws {
        var driver = ControlDriver()
        #expect(try driver.done("server.describe") == Self.document)
        #expect(JSON.encoded(Self.document).count < 512 * 1024)
    }

    @Test func `every method and event is described`() throws {
        for part in ["methods", "x-events"] {
            guard case .array(let entries)? = Self.document[part] else {
                Issue.record("no \(part)")
                continue
            }
            for entry in entries {
                guard case .string(let name)? = entry["name"] else { continue }
                let hasSummary = entry["summary"] != nil
                #expect(hasSummary || part == "x-events", "\(name) has no doc comment")
            }
        }
    }

    @Test func `the list of events is complete`() throws {
        let listed = ContractEvents.all.map { $0.event }
        let declared = try Self.files().flatMap { text in
            text.matches(of: /static let event = "([\w.]+)"/).map { String($0.1) }
        }
        #expect(listed.sorted() == declared.sorted())
        let page = try DocumentationTests.page("ipc.md")
        for event in listed { #expect(page.contains("`\(event)`"), "\(event)") }
    }

    private static func files() throws -> [String] {
        let files = FileManager.default.enumerator(atPath: sources.path)
        return try (files?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(".swift") }
            .map { try String(contentsOf: sources.appending(path: $0), encoding: .utf8) }
    }

    /// Every reference leads to a schema, and every schema is used.
    @Test func `the references are right`() throws {
        guard case .object(let schemas)? = Self.document["components"]?["schemas"] else {
            throw IPCError.internalError("no schemas")
        }
        var used: Set<String> = []
        Self.collect(Self.document, into: &used)
        let names = Set(used.map { String($0.split(separator: "/")[3]) })
        #expect(names == Set(schemas.keys))
        for path in used {
            let value = path.split(separator: "/").dropFirst()
                .reduce(Self.document as JSON?) { $0?[String($1)] }
            #expect(value != nil, "\(path)")
        }
    }

    private static func collect(_ json: JSON, into references: inout Set<String>) {
        switch json {
        case .object(let members):
            if case .string(let path)? = members["$ref"] { references.insert(path) }
            for value in members.values { collect(value, into: &references) }
        case .array(let elements):
            for element in elements { collect(element, into: &references) }
        case .null, .bool, .integer, .number, .string: break
        }
    }

    /// Formats JSON with sorted keys: what fits is on one line.
    private static func pretty(_ json: JSON, indentation: Int = 0) -> String {
        let line = String(decoding: JSON.encoded(json), as: UTF8.self)
        guard indentation + line.count > 90 else { return line }
        let margin = String(repeating: " ", count: indentation)
        func block(_ items: [String], _ open: String, _ close: String) -> String {
            let lines = items.map { "\(margin)  \($0)" }.joined(separator: ",\n")
            return items.isEmpty ? open + close : "\(open)\n\(lines)\n\(margin)\(close)"
        }
        switch json {
        case .object(let members):
            let items = members.sorted { $0.key < $1.key }.map { key, value in
                "\"\(key)\": \(pretty(value, indentation: indentation + 2))"
            }
            return block(items, "{", "}")
        case .array(let elements):
            return block(elements.map { pretty($0, indentation: indentation + 2) }, "[", "]")
        case .null, .bool, .integer, .number, .string: return line
        }
    }
}
