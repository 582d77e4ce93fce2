import CKernel
import Foundation
import Kernel
import LoadPeer
import RTP
import SFU
import Sockets
import Synchronization
import WorkerInterface

/// Settings of the media thread.
struct EngineSettings: Sendable {
    /// Sockets that the clients share, each client with its own address.
    var sockets = 1
    /// Whether all packets are decrypted instead of one in 64.
    var checksEveryPacket = false
    var profile = BenchProfile.gcm
    /// Offset of the first client's address from `firstAddress`.
    var firstClient = 0

    /// 127.1.0.1.
    static let firstAddress: UInt32 = 0x7f01_0001
    /// Kernel buffer of a socket, in bytes; holds a keyframe's burst for a thousand viewers.
    static let buffer = 256 << 20
}

/// Queue of work for the media thread.
final class EngineMailbox: Sendable {
    let descriptor: Int32
    private let waiting = Mutex<[MediaLoop.Work]>([])

    init() throws(SystemError) {
        descriptor = try SystemError.check(kernel_eventfd_create(), "eventfd")
    }

    deinit { kernel_close(descriptor) }

    func put(_ work: @escaping MediaLoop.Work) {
        waiting.withLock { $0.append(work) }
        _ = kernel_eventfd_signal(descriptor)
    }

    func take() -> [MediaLoop.Work] {
        _ = kernel_eventfd_drain(descriptor)
        return waiting.withLock { work in
            defer { work = [] }
            return work
        }
    }
}

/// Clients of a run, with their media thread.
final class Engine: Sendable {
    let settings: EngineSettings
    let library: Library
    private let identity: DTLSIdentity
    private let sockets: [UDPSocket]
    private let mailbox: EngineMailbox
    private let seed: UInt64
    private let made = Mutex(0)
    private let firstSSRC: UInt32

    /// Opens the sockets and starts the thread.
    init(_ settings: EngineSettings, library: Library) throws {
        self.settings = settings
        self.library = library
        identity = try DTLSIdentity(profiles: [settings.profile.srtp])
        mailbox = try EngineMailbox()
        // A fragment must be unique to a peer, so different runs must not share seeds.
        seed = UInt64.random(in: 1 << 32..<1 << 60) & ~0xff_ffff
        firstSSRC = UInt32.random(in: 1...0xfff) << 20
        var sockets: [UDPSocket] = []
        for _ in 0..<max(1, settings.sockets) {
            let socket = try UDPSocket.open(Address(ipv4: 0, port: 0))
            _ = socket.setBuffers(.init(receive: EngineSettings.buffer, send: 4 << 20))
            _ = socket.stampArrivals()
            sockets.append(socket)
        }
        self.sockets = sockets
        let loop = Startup(
            settings: settings,
            identity: identity,
            sockets: sockets,
            mailbox: mailbox
        )
        let thread = Thread { loop.run() }
        thread.name = "media"
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// State that is handed to the new thread.
    private struct Startup: Sendable {
        var settings: EngineSettings
        var identity: DTLSIdentity
        var sockets: [UDPSocket]
        var mailbox: EngineMailbox

        func run() {
            do throws(SystemError) {
                let poller = try MediaLoop.watching(sockets, mailbox)
                var loop = MediaLoop(
                    settings,
                    identity: identity,
                    sockets: sockets,
                    mailbox: mailbox,
                    poller: poller
                )
                loop.run()
            } catch {
                FileHandle.standardError.write(Data("sfu-bench: \(error)\n".utf8))
                exit(71)
            }
            for socket in sockets { socket.close() }
        }
    }

    /// Runs `work` on the media thread and returns its result.
    func perform<Value: Sendable>(
        _ work: @escaping @Sendable (inout MediaLoop) -> Value
    ) async -> Value {
        await withCheckedContinuation { waiter in
            mailbox.put { waiter.resume(returning: work(&$0)) }
        }
    }

    /// Closes all clients' transports and ends the thread.
    func stop() async { await perform { $0.end() } }

    /// Returns a new, unique transport.
    func local() -> LocalTransport {
        let index = made.withLock { made in
            defer { made += 1 }
            return made
        }
        let number = settings.firstClient + index
        let seed = seed + UInt64(index)
        let port = sockets[number % sockets.count].address.port
        return LocalTransport(
            fragment: LoadPeer.fragment(seed: seed),
            password: LoadPeer.password(seed: seed),
            fingerprint: identity.fingerprint,
            address: Address(ipv4: EngineSettings.firstAddress + UInt32(number), port: port),
            seed: seed
        )
    }

    /// Returns the first SSRC of a client.
    ///
    /// It is for audio; a pair for each video layer follows.
    func ssrcs(_ local: LocalTransport) -> UInt32 {
        firstSSRC + UInt32(truncatingIfNeeded: local.seed & 0xffff) * 8
    }
}
