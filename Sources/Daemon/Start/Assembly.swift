import CKernel
import ControlPlane
import Foundation
import Kernel
import LiveStream
import Nodes
import RTP
import Recording
import Rooms
import SFU
import Sockets
import WorkerInterface

/// Builder of the daemon's parts from its configuration.
struct Assembly {
    private let configuration: Configuration
    private let handover: Handover
    private let log: Log

    init(_ configuration: Configuration, _ handover: Handover, _ log: Log) {
        self.configuration = configuration
        self.handover = handover
        self.log = log
    }

    /// Opens the sockets, starts the workers, prints the ready line, and returns the control loop.
    func loop(_ socket: IPCSocket, signals: Int32) throws(StartError) -> EventLoop {
        let open = try ListeningSockets(configuration, handover, log)
        let (sockets, listeners) = (open.udp, open.tcp)
        let calls = try callMemory(sockets, listeners)
        handover.closeRest()
        let engine = try engine()
        let identity: DTLSIdentity
        if let previous = calls.previous {
            identity = previous.identity
        } else {
            identity = try newIdentity()
        }
        let http: HTTPServer?
        if let listener = open.http { http = try HTTPServer(listener) } else { http = nil }
        let setup = try controlSetup(sockets, listeners, identity)
        let cluster = try ClusterService.Opening(configuration.cluster)
        calls.current.save(identity)
        let ipc = IPCServer(socket, limits: configuration.limits.ipc, log: log)
        do throws(SystemError) {
            let disk = try DiskWriter(
                limits: configuration.limits.recording,
                directory: configuration.recordings
            )
            let workers = try start(
                sockets,
                listeners,
                identity,
                engine,
                calls,
                disk,
                cluster
            )
            let poller = try EventLoop.poller(ipc, http, workers, cluster, signals: signals)
            var ready = "ready ipc=\(socket.path) udp=\(setup.udp.joined(separator: ","))"
            if !setup.tcp.isEmpty { ready += " tcp=\(setup.tcp.joined(separator: ","))" }
            let fields = [
                ("version", setup.version), ("workers", "\(setup.workers)"),
                ("engine", engine.rawValue), ("http", http?.address.endpointText ?? "none"),
            ]
            log.info("started", fields)
            Daemon.say(ready + "\n")
            handover.manager.notify(.ready)
            return EventLoop(
                setup,
                poller,
                ipc,
                http,
                workers,
                disk,
                signals: signals,
                handover: handover,
                calls: calls,
                replacement: ProcessReplacement(
                    arguments: Array(CommandLine.arguments.dropFirst()),
                    command: CommandLine.arguments.first ?? "sfud",
                    reserved: configuration.handedDescriptors
                ),
                cluster: cluster,
                log: log
            )
        } catch {
            throw .system("workers", "\(error)")
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
            tapNetworks: configuration.tapNetworks,
            node: configuration.cluster.node?.rawValue
        )
    }

    private func start(
        _ sockets: [[UDPSocket]],
        _ listeners: [[TCPListener]],
        _ identity: DTLSIdentity,
        _ engine: SRTPEngine,
        _ calls: CallMemory,
        _ disk: DiskWriter,
        _ cluster: ClusterService.Opening?
    ) throws(SystemError) -> [Worker] {
        var workers: [Worker] = []
        // One more port for the recorder, which reads the packets that workers mirror to it, and
        // one for the links to other nodes.
        let relays = try RelayNetwork(workers: sockets.count + (cluster == nil ? 1 : 2))
        let leases = cluster == nil ? nil : LeaseTable()
        for (index, own) in sockets.enumerated() {
            let setup = Worker.Setup(
                index: index,
                sockets: own,
                listeners: listeners[index],
                limits: configuration.limits.core,
                identity: identity,
                engine: engine,
                relays: relays,
                leases: leases,
                log: log,
                sendQueue: configuration.limits.sendQueue,
                streams: configuration.limits.streams,
                memory: calls.current.worker(index),
                previous: calls.previous?.worker(index)
            )
            workers.append(try Worker(setup))
        }
        var streaming = configuration.limits.streaming
        streaming.authority = configuration.streamingAuthority
        let recorder = RecorderLoop.Setup(
            index: sockets.count,
            relays: relays,
            disk: disk,
            limits: configuration.limits.recording,
            streaming: streaming,
            log: log
        )
        workers.append(try Worker(recorder))
        guard let cluster, let leases else { return workers }
        let link = LinkThread.Setup(
            index: sockets.count + 1,
            relays: relays,
            leases: leases,
            socket: cluster.socket,
            limits: configuration.limits.core,
            identity: identity,
            engine: engine,
            counters: cluster.counters,
            log: log
        )
        workers.append(try Worker(link))
        return workers
    }

    /// Opens the calls of the life before, and the memory for those of this one.
    private func callMemory(
        _ sockets: [[UDPSocket]],
        _ listeners: [[TCPListener]]
    ) throws(StartError) -> CallMemory {
        let limits = configuration.limits.control
        // FNV-1a; paths name local addresses by their places.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for socket in sockets.joined() {
            for byte in socket.address.endpointText.utf8 {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
        }
        let shape = LifeMemory.Shape(
            workers: sockets.count,
            transports: limits.transportsPerWorker,
            slots: limits.slotsPerWorker,
            addresses: hash
        )
        do throws(SystemError) {
            return try CallMemory(shape, handover, log, at: .monotonic())
        } catch {
            throw .system("memory", "\(error)")
        }
    }

    /// Creates the DTLS certificate that all workers present.
    private func newIdentity() throws(StartError) -> DTLSIdentity {
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
