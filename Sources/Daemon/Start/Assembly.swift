import CKernel
import ControlPlane
import Foundation
import Kernel
import LiveStream
import RTP
import Recording
import Rooms
import SFU
import Sockets
import WorkerInterface

/// Builder of the daemon's parts from its configuration.
struct Assembly {
    private let configuration: Configuration
    private let log: Log

    init(_ configuration: Configuration, _ log: Log) {
        self.configuration = configuration
        self.log = log
    }

    /// Opens the sockets, starts the workers, prints the ready line, and returns the control loop.
    func loop(_ socket: IPCSocket, signals: Int32) throws(StartError) -> EventLoop {
        let sockets = try udpSockets()
        let listeners = try tcpListeners()
        let engine = try engine()
        let identity = try identity()
        let http: HTTPServer?
        if let address = configuration.http { http = try HTTPServer(address) } else { http = nil }
        let setup = try controlSetup(sockets, listeners, identity)
        let ipc = IPCServer(socket, limits: configuration.limits.ipc, log: log)
        do throws(SystemError) {
            let workers = try start(sockets, listeners, identity, engine)
            let poller = try EventLoop.poller(ipc, http, workers, signals: signals)
            var ready = "ready ipc=\(socket.path) udp=\(setup.udp.joined(separator: ","))"
            if !setup.tcp.isEmpty { ready += " tcp=\(setup.tcp.joined(separator: ","))" }
            let fields = [
                ("version", setup.version), ("workers", "\(setup.workers)"),
                ("engine", engine.rawValue), ("http", http?.address.endpointText ?? "none"),
            ]
            log.info("started", fields)
            let manager = ServiceManager(
                environment: ProcessInfo.processInfo.environment,
                processID: ProcessInfo.processInfo.processIdentifier
            )
            Daemon.say(ready + "\n")
            manager.notify(.ready)
            return EventLoop(
                setup,
                poller,
                ipc,
                http,
                workers,
                signals: signals,
                manager: manager,
                log: log
            )
        } catch {
            throw .system("workers", "\(error)")
        }
    }

    /// Opens every configured UDP address once per worker; returns one list of sockets per worker.
    private func udpSockets() throws(StartError) -> [[UDPSocket]] {
        var sockets: [[UDPSocket]] = []
        for worker in 0..<configuration.workers {
            var own: [UDPSocket] = []
            for address in configuration.udp {
                own.append(try open(address, worker: worker))
            }
            sockets.append(own)
        }
        return sockets
    }

    /// Opens every configured TCP address once per worker; returns one list of listeners per
    /// worker.
    private func tcpListeners() throws(StartError) -> [[TCPListener]] {
        var listeners: [[TCPListener]] = []
        for worker in 0..<configuration.workers {
            var own: [TCPListener] = []
            for address in configuration.tcp {
                let port = address.port == 0 ? 0 : address.port + UInt16(worker)
                do throws(SystemError) {
                    own.append(try TCPListener.open(address.with(port: port)))
                } catch {
                    throw .system("tcp", "\(error)")
                }
            }
            listeners.append(own)
        }
        return listeners
    }

    private func open(_ address: Address, worker: Int) throws(StartError) -> UDPSocket {
        let port = address.port == 0 ? 0 : address.port + UInt16(worker)
        do throws(SystemError) {
            let socket = try UDPSocket.open(address.with(port: port))
            if !socket.stampArrivals() { log.warning("no stamps: forwarding times stay empty", []) }
            for shortage in socket.setBuffers(configuration.limits.buffers) {
                let fields = [
                    ("wanted", "\(shortage.wanted)"), ("got", "\(shortage.got)"),
                    ("cure", "sysctl -w \(shortage.sysctl)=\(shortage.wanted)"),
                ]
                log.warning("socket buffer too small", cause: shortage.sysctl, fields)
            }
            return socket
        } catch {
            throw .system("udp", "\(error)")
        }
    }

    private func controlSetup(
        _ sockets: [[UDPSocket]],
        _ listeners: [[TCPListener]],
        _ identity: DTLSIdentity
    ) throws(StartError) -> ControlSetup {
        var generator = SystemRandomNumberGenerator()
        let interfaces: [Candidates.Interface]
        do throws(SystemError) {
            interfaces = try Candidates.interfaces()
        } catch {
            throw .system("udp", "\(error)")
        }
        func reached(_ bound: [Address]) -> [Address] {
            Candidates.addresses(
                of: bound,
                announce: configuration.announce,
                interfaces: interfaces
            )
        }
        var limits = configuration.limits
        limits.control.memoryMegabytes = SystemMemoryLimit.megabytes(
            configured: limits.control.memoryMegabytes,
            allowed: SystemMemoryLimit.current()
        )
        return ControlSetup(
            version: ProgramVersion.text,
            bootID: String(generator.next(), radix: 16),
            startTime: Double(kernel_unix_nanoseconds()) / 1e9,
            random: .system,
            fingerprint: identity.fingerprint,
            candidates: sockets.map { reached($0.map(\.address)) },
            tcpCandidates: listeners.map { reached($0.map(\.address)) },
            udp: sockets.joined().map(\.address.endpointText),
            tcp: listeners.joined().map(\.address.endpointText),
            limits: limits.control,
            configuredLimits: ConfigurationLimit.values(of: limits),
            recordings: configuration.recordings,
            streamingSchemes: configuration.streamingSchemes,
            tapNetworks: configuration.tapNetworks
        )
    }

    private func start(
        _ sockets: [[UDPSocket]],
        _ listeners: [[TCPListener]],
        _ identity: DTLSIdentity,
        _ engine: SRTPEngine
    ) throws(SystemError) -> [Worker] {
        var workers: [Worker] = []
        // One more port for the recorder, which reads the packets that workers mirror to it.
        let relays = try RelayNetwork(workers: sockets.count + 1)
        for (index, own) in sockets.enumerated() {
            let setup = Worker.Setup(
                index: index,
                sockets: own,
                listeners: listeners[index],
                limits: configuration.limits.core,
                identity: identity,
                engine: engine,
                relays: relays,
                log: log,
                sendQueue: configuration.limits.sendQueue,
                streams: configuration.limits.streams
            )
            workers.append(try Worker(setup))
        }
        var streaming = configuration.limits.streaming
        streaming.authority = configuration.streamingAuthority
        let recorder = RecorderLoop.Setup(
            index: sockets.count,
            relays: relays,
            disk: try DiskWriter(limits: configuration.limits.recording),
            limits: configuration.limits.recording,
            streaming: streaming,
            log: log
        )
        workers.append(try Worker(recorder))
        return workers
    }

    /// Creates the DTLS certificate that all workers present.
    private func identity() throws(StartError) -> DTLSIdentity {
        do throws(DTLSError) {
            return try DTLSIdentity()
        } catch {
            throw .system("dtls", "OpenSSL makes no certificate")
        }
    }

    private func engine() throws(StartError) -> SRTPEngine {
        guard let engine = SRTPEngine(rawValue: configuration.engine.rawValue) else {
            return .best
        }
        guard SRTPEngine.available.contains(engine) else {
            throw .configuration(
                "srtp-engine",
                "\(engine.rawValue) is not to be had on this machine"
            )
        }
        return engine
    }
}
