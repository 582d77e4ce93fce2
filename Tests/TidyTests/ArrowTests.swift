import Foundation
import Testing

/// Imports between modules, and uses between parts of the media core, point one way.
@Suite struct ArrowTests {
    /// Modules of ours that each module may import; it may import no others of ours.
    static let modules: [String: Set<String>] = [
        "RTP": [],
        "WorkerInterface": ["RTP"],
        "SFU": ["RTP", "WorkerInterface"],
        "Records": [],
        "Rooms": ["RTP", "WorkerInterface"],
        "JSON": [],
        "Contract": ["JSON"],
        "Kernel": ["RTP"],
        "SFUClient": ["Contract", "JSON", "Kernel"],
        "ControlPlane": ["Contract", "JSON", "RTP", "Rooms", "WorkerInterface"],
        "Nodes": ["Contract", "JSON", "RTP"],
        "Registry": ["Kernel", "Nodes"],
        "Links": ["Kernel", "Nodes", "RTP", "SFU", "Sockets", "WorkerInterface"],
        "Sockets": ["Kernel", "RTP", "SFU", "WorkerInterface"],
        "Recording": ["JSON", "Kernel", "RTP", "SFU", "Sockets", "WorkerInterface"],
        "RTPForward": ["Kernel", "RTP", "Recording", "SFU", "Sockets", "WorkerInterface"],
        "LiveStream": ["JSON", "Kernel", "RTP", "Recording", "SFU", "Sockets", "WorkerInterface"],
        "Daemon": [
            "Contract", "ControlPlane", "JSON", "Kernel", "Links", "LiveStream", "Nodes", "RTP",
            "RTPForward", "Recording", "Records", "Registry", "Rooms", "SFU", "Sockets",
            "WorkerInterface",
        ],
        "Keeper": ["Kernel", "RTP"],
        "sfud": ["Daemon", "Keeper"],
        "sfuctl": ["Contract", "JSON", "Kernel", "SFUClient", "WorkerInterface"],
    ]

    /// Folders of the media core, each with those that it may use; `Worker` uses all of them.
    static let parts: [String: Set<String>] = {
        let leaves: Set = ["Crypto", "Estimation", "Freezes", "Layers", "Storage"]
        let receive = leaves.union(["ActiveSpeakers", "Transport"])
        let forward = leaves.union(["Receive", "Transport"])
        let allocation = forward.union(["Forward"])
        let top = allocation.union(["Allocation"])
        return [
            "Storage": [],
            "Crypto": ["Storage"],
            "Estimation": ["Storage"],
            "Freezes": ["Storage"],
            "Layers": ["Storage"],
            "ActiveSpeakers": ["Storage"],
            "Transport": ["Crypto", "Estimation", "Storage"],
            "Receive": receive,
            "Forward": forward,
            "Allocation": allocation,
            "RTCP": top,
            "Relay": top,
            "Overload": top,
            "Saved": forward.union(["Forward"]),
            "Links": ["Allocation", "Estimation", "Storage"],
        ]
    }()

    /// Names of functions of one folder that elsewhere are cases, or functions of the library.
    static let homonyms: Set = ["drop", "open", "reduce", "transport"]

    @Test(arguments: modules.keys.sorted())
    func `a module imports only modules below it`(_ module: String) throws {
        let allowed = try #require(Self.modules[module])
        let sources = Source.all(under: "Sources/\(module)")
        try #require(!sources.isEmpty)
        for source in sources {
            for name in source.imports where Self.modules[name] != nil && !allowed.contains(name) {
                Issue.record("\(source.path) imports \(name)")
            }
        }
    }

    @Test func `the modules have no cycle`() {
        #expect(Self.cycle(in: Self.modules) == nil)
        #expect(Self.cycle(in: Self.parts) == nil)
    }

    @Test func `every module has its arrows`() {
        let folders = Set(
            TidyTests.sources.map { String($0.path.split(separator: "/")[1]) }
        )
        #expect(folders == Set(Self.modules.keys))
    }

    @Test func `every folder of the core has its arrows`() {
        let folders = Set(Source.all(under: "Sources/SFU").map(\.folder))
        #expect(folders == Set(Self.parts.keys).union(["Worker"]))
    }

    @Test(arguments: parts.keys.sorted())
    func `a part of the core knows only parts below it`(_ part: String) throws {
        let allowed = try #require(Self.parts[part]).union([part])
        let own = Self.core.filter { $0.folder == part }
        try #require(!own.isEmpty)
        for source in own {
            for word in source.typeWords {
                guard let owner = Self.types[word], !allowed.contains(owner) else { continue }
                Issue.record("\(source.path) names \(word) of \(owner)")
            }
            for name in source.calls {
                guard let owner = Self.functions[name], !allowed.contains(owner) else { continue }
                Issue.record("\(source.path) calls \(name) of \(owner)")
            }
        }
    }

    private static let core = Source.all(under: "Sources/SFU")

    /// Folders of the types of the core.
    private static let types: [String: String] = {
        var types: [String: String] = [:]
        for source in core {
            for type in source.declaredTypes { types[type] = source.folder }
        }
        return types
    }()

    /// Folders of the functions whose name only one folder has: a type may be extended in any.
    private static let functions: [String: String] = {
        var owners: [String: Set<String>] = [:]
        for source in core {
            for name in source.declaredFunctions { owners[name, default: []].insert(source.folder) }
        }
        let below = ["RTP", "WorkerInterface"].flatMap { Source.all(under: "Sources/\($0)") }
        for source in below {
            for name in source.declaredFunctions { owners[name] = nil }
        }
        for name in homonyms { owners[name] = nil }
        return owners.compactMapValues { $0.count == 1 ? $0.first : nil }
    }()

    /// A module of a cycle, if there is one.
    static func cycle(in arrows: [String: Set<String>]) -> String? {
        var rest = arrows
        while let free = rest.first(where: { $0.value.isDisjoint(with: rest.keys) })?.key {
            rest[free] = nil
        }
        return rest.keys.min()
    }
}

extension Source {
    fileprivate var imports: [String] {
        text.matches(of: /(?m)^ *(?:@testable )?(?:\w+ )?import (\w+)$/).map { String($0.1) }
    }

    /// The folder below its module.
    fileprivate var folder: String { String(path.split(separator: "/")[2]) }

    fileprivate var declaredTypes: [String] {
        let declaration = /(?m)^(?:[a-z@]\w+ )*(?:struct|enum|class|protocol|typealias) (\w+)/
        return text.matches(of: declaration).map { String($0.1) }
    }

    /// Words of the code that begin as types do.
    fileprivate var typeWords: Set<String> {
        Set(codeWithoutStrings.matches(of: /\b[A-Z]\w+/).map { String($0.0) })
    }

    fileprivate var declaredFunctions: Set<String> {
        Set(codeWithoutStrings.matches(of: /\bfunc (\w+)/).map { String($0.1) })
    }

    fileprivate var calls: Set<String> {
        Set(codeWithoutStrings.matches(of: /\b([a-z]\w+)\(/).map { String($0.1) })
    }

    private var codeWithoutStrings: String {
        code.map(\.line).joined(separator: "\n")
            .replacing(/"(?:\\.|[^"\\\n])*"/, with: "")
            // Tags of handles, not the types of the same name.
            .replacing(/HandleKind\.\w+|enum \w+ \{\}/, with: "")
    }
}
