// swift-tools-version: 6.3
import PackageDescription

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableExperimentalFeature("Lifetimes"),  // ~Escapable views
    .enableExperimentalFeature("SafeInteropWrappers"),  // Span overloads of our C
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

// intel-ipsec-mb exists on x86-64 only; elsewhere libsrtp2 does all the work.
#if arch(x86_64)
    let ipsecMB: [Target] = [.systemLibrary(name: "CIPSecMB")]
    let ipsecMBDependency: [Target.Dependency] = ["CIPSecMB"]
#else
    let ipsecMB: [Target] = []
    let ipsecMBDependency: [Target.Dependency] = []
#endif

let daemon: [Target.Dependency] = [
    "RTP", "SFU", "Sockets", "SFUClient", "CKernel", "CMicroHTTPD", "CAVFormat", "Recording",
    "Streaming",
]
let fuzzed: [Target.Dependency] = [
    "HostilePeer", "LoadPeer", "RTP", "Recording", "SFU", "SFUClient", "Sockets", "Streaming",
    "sfud",
]
let simulated: [Target.Dependency] = [
    "HostilePeer", "LoadPeer", "RTP", "SFU", "SFUClient", "Sockets", "sfud",
]

let package = Package(
    name: "sfud",
    products: [
        .executable(name: "sfud", targets: ["sfud"]),
        .executable(name: "sfuctl", targets: ["sfuctl"]),
        .library(name: "SFUClient", targets: ["SFUClient"]),
        .library(name: "loopback-only", type: .dynamic, targets: ["LoopbackOnly"]),
    ],
    targets: ipsecMB + [
        .systemLibrary(name: "CSRTP", pkgConfig: "libsrtp2"),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl"),
        .systemLibrary(name: "COpus", pkgConfig: "opus"),
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd"),
        .systemLibrary(name: "CAVFormat", pkgConfig: "libavformat"),
        .target(name: "CKernel"),
        .target(name: "RTP", swiftSettings: strict),
        .target(
            name: "SFU",
            dependencies: ["RTP", "CSRTP", "COpenSSL", "COpus"] + ipsecMBDependency,
            swiftSettings: strict
        ),
        .target(
            name: "Sockets",
            dependencies: ["CKernel", "RTP", "SFU"],
            swiftSettings: strict
        ),
        .target(name: "Recording", dependencies: ["RTP", "SFU"], swiftSettings: strict),
        .target(name: "Streaming", dependencies: ["RTP", "SFU"], swiftSettings: strict),
        .target(name: "SFUClient", dependencies: ["CKernel"], swiftSettings: strict),
        .executableTarget(
            name: "sfud",
            dependencies: daemon,
            swiftSettings: strict
        ),
        .executableTarget(
            name: "sfuctl",
            dependencies: ["SFUClient"],
            swiftSettings: strict
        ),
        .testTarget(name: "RTPTests", dependencies: ["RTP"], swiftSettings: strict),
        .target(
            name: "LoadPeer",
            dependencies: ["RTP", "SFU"],
            path: "benchmarks/LoadPeer",
            swiftSettings: strict
        ),
        .target(
            name: "HostilePeer",
            dependencies: ["RTP", "SFU"],
            path: "Tests/HostilePeer",
            swiftSettings: strict
        ),
        .target(name: "CCounting", path: "benchmarks/CCounting"),
        .executableTarget(
            name: "core-cost",
            dependencies: ["CCounting", "COpus", "LoadPeer", "RTP", "SFU"],
            path: "benchmarks/CoreCost",
            swiftSettings: strict
        ),
        .systemLibrary(name: "CVPX", path: "benchmarks/CVPX", pkgConfig: "vpx"),
        .target(name: "CFloor", path: "benchmarks/CFloor"),
        .target(name: "LoopbackOnly", path: "benchmarks/LoopbackOnly"),
        .executableTarget(
            name: "sfu-bench",
            dependencies: [
                "CFloor", "CKernel", "COpus", "CVPX", "LoadPeer", "RTP", "SFU", "SFUClient",
                "Sockets",
            ],
            path: "benchmarks/Bench",
            swiftSettings: strict
        ),
        .testTarget(
            name: "SFUTests",
            dependencies: ["CKernel", "COpus", "RTP", "SFU", "LoadPeer"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SocketsTests",
            dependencies: ["Sockets", "RTP", "SFU", "CKernel"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "RecordingTests",
            dependencies: ["Recording", "RTP", "SFU"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "StreamingTests",
            dependencies: ["Streaming", "RTP", "SFU"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SFUClientTests",
            dependencies: ["SFUClient", "sfuctl"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "sfudTests",
            dependencies: [
                "sfud", "RTP", "SFU", "Sockets", "SFUClient", "CKernel", "LoadPeer",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SimulatorTests",
            dependencies: simulated,
            exclude: ["Plants", "Run"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BenchTests",
            dependencies: ["RTP", "sfu-bench"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: fuzzed,
            exclude: ["Corpus", "Run"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "TidyTests",
            exclude: ["TrapExceptions.txt"],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)

// Scripts/fuzz and `make simulate` make programs of tests, and so sfud a library.
let libFuzzer = Context.environment["SFUD_FUZZ"]
let isSimulator = Context.environment["SFUD_SIMULATE"] != nil
if libFuzzer != nil || isSimulator {
    package.products = []
    package.targets.removeAll { $0.type == .test || $0.type == .executable }
    package.targets.append(
        .target(
            name: "sfud",
            dependencies: daemon,
            exclude: ["main.swift"],
            swiftSettings: strict
        )
    )
}
if isSimulator {
    package.targets.append(
        .executableTarget(
            name: "sfu-simulate",
            dependencies: simulated,
            path: "Tests/SimulatorTests",
            exclude: ["Daemon", "LedgerTests.swift", "Plants", "WorldTests.swift"],
            swiftSettings: strict
        )
    )
}
// It says where libFuzzer is.
if let libFuzzer {
    package.targets += [
        .systemLibrary(name: "CFuzzer", path: "Tests/CFuzzer"),
        .executableTarget(
            name: "sfud-fuzz",
            dependencies: fuzzed + ["CFuzzer"],
            path: "Tests/FuzzTests",
            exclude: ["Corpus", "ReplayTests.swift", "Support"],
            swiftSettings: strict,
            linkerSettings: [.unsafeFlags([libFuzzer]), .linkedLibrary("stdc++")]
        ),
    ]
}
