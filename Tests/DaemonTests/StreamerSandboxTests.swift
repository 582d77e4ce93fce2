import CKernel
import Foundation
import Glibc
import Kernel
import RTP
import Testing
import WorkerInterface

@testable import LiveStream

/// Sandbox of the decoder of untrusted media: its access and its resources.
@Suite(.timeLimit(.minutes(10))) struct StreamerSandboxTests {
    /// Tries, in a process of its own, everything that the streamer must not be able to do.
    ///
    /// It ends with status 0 if each action succeeds before and fails after, else with the number
    /// of the first for which that is not so.
    @Test func `A5 the streamer reaches neither socket nor files, and starts nothing`() async {
        await #expect(processExitsWith: .success) {
            let directory = NSTemporaryDirectory() + "sfud-sandbox-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true
            )
            let attempts = Attempts(directory: directory)
            let before = attempts.first { !$0.succeeds() }
            let missing = StreamerSandbox.enter(authority: attempts.authority)
            let after = attempts.first { $0.succeeds() }
            let mayStill = attempts.permitted.first { !$0.succeeds() }
            guard missing.isEmpty, before == nil, after == nil, mayStill == nil else {
                let names = [before, after, mayStill].map { $0?.name ?? "-" }
                let found = "missing \(missing); \(names[0]) fails before, \(names[1]) succeeds"
                FileHandle.standardError.write(Data("\(found), \(names[2]) fails\n".utf8))
                _exit(1)
            }
            // Leak checkers would start a process.
            _exit(0)
        }
    }

    /// Makes a VP8 keyframe of any size, whose bits are all 0.
    private static func vp8(_ width: Int, _ height: Int) -> [UInt8] {
        let first = 1 << 18
        let tag = first << 5 | 1 << 4
        var frame = [UInt8(tag & 0xff), UInt8(tag >> 8 & 0xff), UInt8(tag >> 16 & 0xff)]
        frame += [0x9d, 0x01, 0x2a]
        for side in [width, height] { frame += [UInt8(side & 0xff), UInt8(side >> 8)] }
        return frame + [UInt8](repeating: 0, count: first * 2)
    }

    struct Size: CustomTestStringConvertible, Sendable {
        var width: Int
        var height: Int
        var fits: Bool
        var testDescription: String { "\(width) by \(height)" }
    }

    static let sizes = [
        Size(width: 4_096, height: 2_304, fits: true),
        Size(width: 2_304, height: 4_096, fits: true),
        Size(width: 4_096, height: 2_320, fits: false),
        Size(width: 5_120, height: 2_880, fits: false),
        Size(width: 16_383, height: 16_383, fits: false),
    ]

    @Test(arguments: sizes)
    func `A5 pictures are decoded up to 4096 by 2304`(_ size: Size) throws {
        let decoder = try #require(StreamDecoder(.vp8, configuration: []))
        #expect(decoder.decode(Self.vp8(size.width, size.height)) == size.fits)
        #expect(decoder.decode(Self.vp8(320, 180)))
        #expect(decoder.picture(width: 320, height: 180) != nil)
    }

    @Test func `A5 a track that cannot be decoded costs no other`() throws {
        let settings = StreamSettings(
            url: "",
            width: 640,
            height: 360,
            bitrate: 1,
            retrySeconds: 1,
            hasBeenUp: false
        )
        let studio = StreamPlayout(settings, at: .monotonic())
        var decoding = StreamDecoding(studio)
        decoding.take(.tiles([1, 2]))
        for step in 0..<20 as Range<UInt8> {
            let frames: [UInt32: [UInt8]] = [
                1: [[], [step], Self.vp8(5_120, 2_880)][Int(step) % 3],
                2: Self.vp8(320, 180),
            ]
            for (track, bytes) in frames {
                decoding.take(
                    .frame(
                        StreamFrame(
                            track: track,
                            codec: .vp8,
                            isKeyframe: true,
                            instant: .monotonic(),
                            configuration: [],
                            bytes: bytes
                        )
                    )
                )
            }
        }
        let now = Instant.monotonic()
        let shown = studio.state.withLock { $0.stage.pictures(until: now, at: now) }
        #expect(shown.map { $0 == nil } == [true, false])
    }
}

/// Actions that the sandbox must prevent.
private struct Attempts {
    struct Attempt: Sendable {
        var name: String
        var succeeds: @Sendable () -> Bool
    }

    let authority: String
    private let attempts: [Attempt]
    let permitted: [Attempt]

    init(directory: String) {
        let socket = directory + "/sfud.sock"
        let file = directory + "/recording.webm"
        let authority = directory + "/ca.pem"
        for path in [file, authority] {
            _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        let listening = unsafe kernel_unix_listen(socket, 0o600, 16)
        let parent = getppid()
        self.authority = authority
        attempts = [
            Attempt(name: "listen") { listening >= 0 && Self.closes(Self.unixSocket()) },
            Attempt(name: "connect") { Self.closes(unsafe kernel_unix_connect(socket)) },
            Attempt(name: "read") { Self.closes(unsafe open(file, O_RDONLY)) },
            Attempt(name: "write") { Self.closes(unsafe open(file, O_WRONLY)) },
            Attempt(name: "make") { Self.closes(unsafe open("\(file)2", O_RDWR | O_CREAT, 0o600)) },
            Attempt(name: "list") { Self.lists("/proc") },
            Attempt(name: "signal") { kill(parent, 0) == 0 },
            Attempt(name: "start") { Self.starts() },
            Attempt(name: "terminal") { Self.closes(unsafe open("/dev/null", O_RDWR)) },
        ]
        permitted = [
            Attempt(name: "authority") { Self.closes(unsafe open(authority, O_RDONLY)) },
            Attempt(name: "hosts") { Self.closes(unsafe open("/etc/hosts", O_RDONLY)) },
            Attempt(name: "TCP") { Self.closes(Glibc.socket(AF_INET, Self.stream, 0)) },
            Attempt(name: "thread") { Self.startsThread() },
        ]
    }

    func first(where isWanted: (Attempt) -> Bool) -> Attempt? { attempts.first(where: isWanted) }

    private static let stream = Int32(SOCK_STREAM.rawValue)

    private static func unixSocket() -> Int32 { Glibc.socket(AF_UNIX, stream, 0) }

    private static func closes(_ descriptor: Int32) -> Bool {
        guard descriptor >= 0 else { return false }
        kernel_close(descriptor)
        return true
    }

    private static func lists(_ path: String) -> Bool {
        guard let directory = unsafe opendir(path) else { return false }
        unsafe closedir(directory)
        return true
    }

    private static func starts() -> Bool {
        var child: pid_t = 0
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe [strdup("true"), nil]
        defer { unsafe free(arguments[0]) }
        guard unsafe posix_spawn(&child, "/bin/true", nil, nil, &arguments, nil) == 0 else {
            return false
        }
        var status: Int32 = 0
        return unsafe waitpid(child, &status, 0) == child && status == 0
    }

    private static func startsThread() -> Bool {
        let done = DispatchSemaphore(value: 0)
        let thread = Thread { @Sendable in done.signal() }
        thread.start()
        return done.wait(timeout: .now() + 5) == .success
    }
}
