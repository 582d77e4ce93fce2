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
        .systemLibrary(name: "CNATS", pkgConfig: "libnats"),
        .target(name: "CKernel"),
        .target(
            name: "CDTLSAlgorithms",
            dependencies: ["COpenSSL"],
            linkerSettings: [.linkedLibrary("crypto")]
        ),
        // The core, in the order in which one may know another.
        .target(name: "RTP", swiftSettings: strict),
        .target(
            name: "WorkerInterface",
            dependencies: ["CKernel", "RTP"],
            swiftSettings: strict
        ),
        .target(
            name: "SFU",
            dependencies: [
                "CDTLSAlgorithms", "COpenSSL", "COpus", "CSRTP", "RTP", "WorkerInterface",
            ] + ipsecMBDependency,
            swiftSettings: strict
        ),
        // Records of state that outlives the process.
        .target(name: "Records", swiftSettings: strict),
        .target(
            name: "Rooms",
            dependencies: ["RTP", "WorkerInterface"],
            swiftSettings: strict
        ),
        // The contract with signalling servers, and their client.
        .target(name: "JSON", swiftSettings: strict),
        .target(
            name: "Contract",
            dependencies: ["JSON"],
            swiftSettings: strict
        ),
        .target(
            name: "SFUClient",
            dependencies: ["CKernel", "Contract", "JSON", "Kernel"],
            swiftSettings: strict
        ),
        .target(
            name: "ControlPlane",
            dependencies: ["Contract", "JSON", "RTP", "Rooms", "WorkerInterface"],
            swiftSettings: strict
        ),
        // The nodes of a cluster.
        .target(
            name: "Nodes",
            dependencies: ["Contract", "JSON", "RTP"],
            swiftSettings: strict
        ),
        // Modules that touch the system.
        .target(
            name: "Kernel",
            dependencies: ["CKernel", "RTP"],
            swiftSettings: strict
        ),
        .target(
            name: "Sockets",
            dependencies: ["CKernel", "Kernel", "RTP", "SFU", "WorkerInterface"],
            swiftSettings: strict
        ),
        .target(
            name: "Registry",
            dependencies: ["CNATS", "Kernel", "Nodes"],
            swiftSettings: strict
        ),
        .target(
            name: "Links",
            dependencies: [
                "CKernel", "COpenSSL", "Kernel", "Nodes", "RTP", "SFU", "Sockets",
                "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Recording",
            dependencies: [
                "CAVFormat", "CKernel", "JSON", "Kernel", "RTP", "SFU", "Sockets",
                "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "RTPForward",
            dependencies: [
                "CKernel", "Kernel", "RTP", "Recording", "SFU", "Sockets", "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LiveStream",
            dependencies: [
                "CAVFormat", "CKernel", "JSON", "Kernel", "RTP", "Recording", "SFU", "Sockets",
                "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Daemon",
            dependencies: [
                "CKernel", "CMicroHTTPD", "Contract", "ControlPlane", "JSON", "Kernel",
                "Links", "LiveStream", "Nodes", "RTP", "RTPForward", "Recording", "Records",
                "Registry", "Rooms", "SFU", "Sockets", "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Keeper",
            dependencies: ["CKernel", "Kernel", "RTP"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "sfud",
            dependencies: ["Daemon", "Keeper"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "sfuctl",
            dependencies: [
                "CKernel", "Contract", "JSON", "Kernel", "SFUClient", "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        // Benchmarks.
        .target(
            name: "LoadPeer",
            dependencies: ["RTP", "SFU", "WorkerInterface"],
            path: "benchmarks/LoadPeer",
            swiftSettings: strict
        ),
        .target(name: "CCounting", path: "benchmarks/CCounting"),
        .systemLibrary(name: "CVPX", path: "benchmarks/CVPX", pkgConfig: "vpx"),
        .target(name: "CFloor", path: "benchmarks/CFloor"),
        .target(name: "LoopbackOnly", path: "benchmarks/LoopbackOnly"),
        .executableTarget(
            name: "core-cost",
            dependencies: ["CCounting", "COpus", "LoadPeer", "RTP", "SFU", "WorkerInterface"],
            path: "benchmarks/CoreCost",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "sfu-bench",
            dependencies: [
                "CFloor", "CKernel", "COpus", "CVPX", "Contract", "JSON", "Kernel", "LoadPeer",
                "RTP", "SFU", "SFUClient", "Sockets", "WorkerInterface",
            ],
            path: "benchmarks/Bench",
            swiftSettings: strict
        ),
        // Tests, and what they share with the simulator and the fuzzer.
        .target(
            name: "TestSupport",
            dependencies: ["Rooms", "SFU"],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        .target(
            name: "HostilePeer",
            dependencies: ["RTP", "SFU", "WorkerInterface"],
            path: "Tests/HostilePeer",
            swiftSettings: strict
        ),
        .target(
            name: "Simulator",
            dependencies: [
                "Contract", "ControlPlane", "Daemon", "HostilePeer", "JSON", "Kernel", "LoadPeer",
                "RTP", "Rooms", "SFU", "Sockets", "TestSupport", "WorkerInterface",
            ],
            path: "Tests/Simulator",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "sfu-simulate",
            dependencies: ["SFU", "Simulator"],
            path: "Tests/Simulate",
            swiftSettings: strict
        ),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Contract", "ControlPlane", "Daemon", "HostilePeer", "JSON", "Kernel", "LoadPeer",
                "RTP", "Recording", "Rooms", "SFU", "Sockets", "TestSupport", "WorkerInterface",
            ],
            path: "Tests/FuzzTargets",
            swiftSettings: strict
        ),
        .systemLibrary(name: "CFuzzer", path: "Tests/CFuzzer"),
        .executableTarget(
            name: "sfud-fuzz",
            dependencies: ["CFuzzer", "FuzzTargets"],
            path: "Tests/Fuzz",
            swiftSettings: strict
        ),
        .testTarget(
            name: "RTPTests",
            dependencies: ["RTP", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "NodesTests",
            dependencies: ["Contract", "JSON", "Nodes", "RTP", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LinksTests",
            dependencies: [
                "CKernel", "Kernel", "Links", "Nodes", "RTP", "SFU", "Sockets", "TestSupport",
                "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "RecordsTests",
            dependencies: ["Records", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SFUTests",
            dependencies: [
                "COpenSSL", "COpus", "LoadPeer", "RTP", "Rooms", "SFU", "TestSupport",
                "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "RoomsTests",
            dependencies: [
                "CKernel", "Contract", "ControlPlane", "JSON", "RTP", "Rooms", "TestSupport",
                "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SocketsTests",
            dependencies: [
                "CKernel", "Kernel", "RTP", "SFU", "Sockets", "TestSupport", "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "RecordingTests",
            dependencies: [
                "RTP", "RTPForward", "Recording", "SFU", "TestSupport", "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LiveStreamTests",
            dependencies: ["LiveStream", "RTP", "SFU", "WorkerInterface"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SFUClientTests",
            dependencies: [
                "Contract", "JSON", "SFUClient", "TestSupport", "WorkerInterface", "sfuctl",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "DaemonTests",
            dependencies: [
                "CKernel", "CMicroHTTPD", "Contract", "ControlPlane", "Daemon", "JSON", "Kernel",
                "LiveStream", "LoadPeer", "RTP", "RTPForward", "Recording", "Rooms", "SFU",
                "Sockets", "TestSupport", "WorkerInterface",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "KeeperTests",
            dependencies: ["Keeper", "Kernel", "RTP", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SimulatorTests",
            dependencies: [
                "Contract", "ControlPlane", "Daemon", "HostilePeer", "JSON", "Kernel", "Links",
                "LoadPeer", "RTP", "Rooms", "SFU", "Simulator", "Sockets", "TestSupport",
                "WorkerInterface",
            ],
            exclude: ["Plants"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BenchTests",
            dependencies: ["RTP", "sfu-bench"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["FuzzTargets", "SFU", "TestSupport"],
            exclude: ["Corpus"],
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
