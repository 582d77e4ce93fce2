import CKernel
import Kernel
import Sockets
import WorkerInterface

/// Sockets for media and for HTTP: those of the life before, as far as they fit, and new ones.
///
/// All stay open for the next life, by the names `udp.W.N`, `tcp.W.N` and `http`: W is the worker,
/// N the place of the address in the configuration.
struct ListeningSockets {
    /// One list for each worker.
    private(set) var udp: [[UDPSocket]] = []
    private(set) var tcp: [[TCPListener]] = []
    private(set) var http: TCPListener?

    private let configuration: Configuration
    private let handover: Handover
    private let log: Log
    private var inheritedUDP: [String: UDPSocket] = [:]
    private var inheritedTCP: [String: TCPListener] = [:]

    init(
        _ configuration: Configuration,
        _ handover: Handover,
        _ log: Log
    ) throws(StartError) {
        self.configuration = configuration
        self.handover = handover
        self.log = log
        adopt()
        for worker in 0..<configuration.workers {
            udp.append(try openUDP(worker))
            tcp.append(try openTCP(worker))
        }
        if let address = configuration.http {
            http = try listener("http", address, setting: "http")
        }
    }

    /// Takes the inherited sockets that fit, and closes the others.
    ///
    /// This comes before any new socket is opened, as one may need the port of another that was
    /// inherited for another place.
    private mutating func adopt() {
        for worker in 0..<configuration.workers {
            for (place, address) in configuration.udp.enumerated() {
                let name = "udp.\(worker).\(place)"
                inheritedUDP[name] = handover.adopt(name) { descriptor in
                    UDPSocket.adopt(descriptor, at: address.of(worker: worker))
                }
            }
            for (place, address) in configuration.tcp.enumerated() {
                adoptListener("tcp.\(worker).\(place)", address.of(worker: worker))
            }
        }
        if let address = configuration.http { adoptListener("http", address) }
        handover.closeRest { name in
            !name.hasPrefix("udp.") && !name.hasPrefix("tcp.") && name != "http"
        }
    }

    private mutating func adoptListener(_ name: String, _ address: Address) {
        inheritedTCP[name] = handover.adopt(name) { descriptor in
            TCPListener.adopt(descriptor, at: address)
        }
    }

    /// Opens every configured UDP address for a worker.
    private func openUDP(_ worker: Int) throws(StartError) -> [UDPSocket] {
        var sockets: [UDPSocket] = []
        for (place, address) in configuration.udp.enumerated() {
            let name = "udp.\(worker).\(place)"
            let socket: UDPSocket
            if let inherited = inheritedUDP[name] {
                socket = inherited
            } else {
                do throws(SystemError) {
                    socket = try UDPSocket.open(address.of(worker: worker))
                } catch {
                    throw .system("udp", "\(error)")
                }
                handover.keep(socket.descriptor, as: name)
            }
            prepare(socket)
            sockets.append(socket)
        }
        return sockets
    }

    private func prepare(_ socket: UDPSocket) {
        if !socket.stampArrivals() { log.warning("no stamps: forwarding times stay empty", []) }
        for shortage in socket.setBuffers(configuration.limits.buffers) {
            let fields = [
                ("wanted", "\(shortage.wanted)"), ("got", "\(shortage.got)"),
                ("cure", "sysctl -w \(shortage.sysctl)=\(shortage.wanted)"),
            ]
            log.warning("socket buffer too small", cause: shortage.sysctl, fields)
        }
    }

    /// Opens every configured TCP address for a worker.
    private func openTCP(_ worker: Int) throws(StartError) -> [TCPListener] {
        var listeners: [TCPListener] = []
        for (place, address) in configuration.tcp.enumerated() {
            let address = address.of(worker: worker)
            listeners.append(try listener("tcp.\(worker).\(place)", address, setting: "tcp"))
        }
        return listeners
    }

    private func listener(
        _ name: String,
        _ address: Address,
        setting: String
    ) throws(StartError) -> TCPListener {
        if let inherited = inheritedTCP[name] { return inherited }
        do throws(SystemError) {
            let listener = try TCPListener.open(address)
            handover.keep(listener.descriptor, as: name)
            return listener
        } catch {
            throw .system(setting, "\(error)")
        }
    }
}

extension Address {
    /// Returns the address of a worker, whose port follows the first worker's.
    fileprivate func of(worker: Int) -> Address {
        port == 0 ? self : with(port: port + UInt16(worker))
    }
}
