import Testing

/// The types that route own few parts, and the parts own the rest.
@Suite struct StoredPropertyTests {
    static let most = 10

    static let types = [
        ("Core", "Sources/SFU/Worker/Core.swift"),
        ("Room", "Sources/Rooms/Model/Room.swift"),
        ("ControlPlane", "Sources/ControlPlane/ControlPlane.swift"),
    ]

    @Test(arguments: types)
    func `a type that routes has at most ten stored properties`(
        _ type: String,
        _ path: String
    ) throws {
        let source = try #require(Source.all(under: "Sources").first { $0.path == path })
        let names = Self.storedProperties(of: type, in: source)
        #expect(!names.isEmpty)
        #expect(names.count <= Self.most, "\(type) has \(names.joined(separator: ", "))")
    }

    @Test func `stored properties are told from computed ones`() {
        let source = Source(
            path: "Sources/Other.swift",
            text: """
                package struct Other: ~Copyable {
                    static let limit = 4
                    let first: Int
                    private(set) var second = 2 {
                        didSet { first = 1 }
                    }
                    package var third: Int { first + second }
                    var fourth: Int {
                        first
                    }
                    func fifth() {
                        let local = 1
                    }
                }

                struct Another {
                    var sixth = 6
                }
                """
        )
        #expect(Self.storedProperties(of: "Other", in: source) == ["first", "second"])
    }

    /// Names of the stored properties in the declaration of `type`, as `swift format` indents it.
    private static func storedProperties(of type: String, in source: Source) -> [String] {
        let lines = source.code.map(\.line)
        let pattern = "(struct|class|actor) \(type)\\b.*\\{$"
        guard let regex = try? Regex(pattern),
            let start = lines.firstIndex(where: { !$0.hasPrefix(" ") && $0.contains(regex) })
        else { return [] }
        let body = lines[(start + 1)...].prefix { $0 != "}" }
        return body.indices.compactMap { index in
            let declaration = #/    ((?:[a-z]+(?:\([a-z]+\))? )*)(?:var|let) (\w+)(.*)/#
            guard let match = body[index].wholeMatch(of: declaration),
                !match.1.contains("static")
            else { return nil }
            let rest = match.3
            let next = index + 1 < body.endIndex ? body[index + 1] : ""
            let isObserved = next.contains("didSet") || next.contains("willSet")
            let isComputed = rest.contains("{") && !rest.contains("=") && !isObserved
            return isComputed ? nil : String(match.2)
        }
    }
}
