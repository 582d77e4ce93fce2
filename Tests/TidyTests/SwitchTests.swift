import Testing

/// Bans `default:` in switches over our own enums: a new case must not compile until it is handled.
///
/// The tests see text, not types. A switch with a pattern such as `.name` is over an enum, which is
/// taken for ours unless it is listed here.
@Suite struct SwitchTests {
    /// Switches over enums of others, as path and subject, with the enum.
    static let exceptions = [
        "Sources/Daemon/HTTP/HTTPServer.swift: what": "C enum of libmicrohttpd",
        "Sources/sfuctl/Table.swift: scalar.properties.generalCategory": "enum of Swift's library",
    ]

    @Test(arguments: TidyTests.sources)
    func `switches over our enums have no default`(_ source: Source) {
        for fault in SwitchWithDefault.all(in: source.text)
        where Self.exceptions["\(source.path): \(fault.subject)"] == nil {
            Issue.record("\(source.path):\(fault.line) has a default over an enum")
        }
    }

    @Test func `every exception is needed`() {
        let found = TidyTests.sources.flatMap { source in
            SwitchWithDefault.all(in: source.text).map { "\(source.path): \($0.subject)" }
        }
        for exception in Self.exceptions.keys where !found.contains(exception) {
            Issue.record("\(exception) has no default any longer")
        }
    }

    @Test(arguments: [
        "switch a { case .one: 1; default: 2 }",
        "switch a.b(.c) { case let .one(x): x; default: 2 }",
        "switch (a, b) { case (.one, _): 1; default: 2 }",
        "switch a { case 1: switch b { case .one: 1; default: 2 }; default: 3 }",
        "switch a { case .some: 1; case .one: 2; default: 3 }",
    ])
    func `finds a default over an enum`(_ text: String) {
        #expect(SwitchWithDefault.all(in: text).count == 1)
    }

    @Test(arguments: [
        "switch a { case .one: 1; case .two: 2 }",
        "switch a { case 1: 1; default: 2 }",
        "switch a { case ...0: 1; default: 2 }",
        "switch a { case .some(let x) where x > 1: 1; default: 2 }",
        "switch a { case 1: if case .one = b { 1 }; default: 2 }",
        "switch a { case .one: switch b { case 1: 1; default: 2 } }",
        "a.switch(b); default: 2",
    ])
    func `finds no other default`(_ text: String) {
        #expect(SwitchWithDefault.all(in: text).isEmpty)
    }
}

/// Switch over an enum that has a `default`.
struct SwitchWithDefault {
    /// Expression that is switched over, without spaces.
    var subject: String
    /// Line of the `default`.
    var line: Int

    static func all(in text: String) -> [SwitchWithDefault] {
        let tokens = SwiftTokenizer.tokens(of: text)
        return tokens.indices.compactMap { index in
            guard tokens[index].text == "switch", tokens[index].kind == .word,
                index == 0 || tokens[index - 1].text != "."
            else { return nil }
            return Self(at: index, in: tokens)
        }
    }

    private init?(at start: Int, in tokens: [SwiftToken]) {
        var body = start + 1
        while body < tokens.count, tokens[body].text != "{" {
            let isGroup = tokens[body].text == "(" || tokens[body].text == "["
            body = isGroup ? tokens.end(ofGroupAt: body) + 1 : body + 1
        }
        guard body < tokens.count else { return nil }
        subject = tokens[start + 1..<body].map(\.text).joined()

        var defaultLine: Int?
        var isOverEnum = false
        var index = body + 1
        let end = tokens.end(ofGroupAt: body)
        while index < end {
            let token = tokens[index]
            if token.kind == .symbol, "([{".contains(token.text) {
                index = tokens.end(ofGroupAt: index)
            } else if token.text == "default", tokens[index + 1].text == ":" {
                defaultLine = token.line
            } else if token.text == "case", !Self.isCondition(after: tokens[index - 1]) {
                isOverEnum = isOverEnum || Self.isEnumPattern(tokens[(index + 1)...])
            }
            index += 1
        }
        guard let defaultLine, isOverEnum else { return nil }
        line = defaultLine
    }

    /// Whether a `case` after this token belongs to `if case` or the like.
    private static func isCondition(after token: SwiftToken) -> Bool {
        ["if", "guard", "while", "for", ","].contains(token.text)
    }

    /// Whether a pattern is an enum's case; those of `Optional` do not count.
    private static func isEnumPattern(_ tokens: ArraySlice<SwiftToken>) -> Bool {
        let pattern = tokens.drop { ["let", "var", "("].contains($0.text) }
        guard pattern.first?.text == ".", let name = pattern.dropFirst().first else { return false }
        return name.kind == .word && !["some", "none"].contains(name.text)
    }
}
