import CKernel
import Kernel
import WorkerInterface

/// Selection of the host candidates that an SDP answer names for a socket.
enum Candidates {
    /// Network interface address of this machine.
    struct Interface: Equatable {
        var address: Address
        var isLoopback: Bool
    }

    /// Returns the candidate addresses in the order of `sockets`, without duplicates.
    ///
    /// Addresses in `announce` replace the bound ones of the same IP family; ports stay those of
    /// the sockets.
    static func addresses(
        of sockets: [Address],
        announce: [Address],
        interfaces: [Interface]
    ) -> [Address] {
        var addresses: [Address] = []
        for socket in sockets {
            let announced = announce.filter { $0.isIPv6 == socket.isIPv6 }
            let hosts =
                announced.isEmpty ? listened(socket, interfaces) : announced
            for host in hosts.map({ $0.with(port: socket.port) }) where !addresses.contains(host) {
                addresses.append(host)
            }
        }
        return addresses
    }

    private static func listened(_ socket: Address, _ interfaces: [Interface]) -> [Address] {
        guard socket.isWildcard else { return [socket] }
        // A remote peer cannot use a link-local address, as it does not know our interface's scope.
        let family = interfaces.filter {
            $0.address.isIPv6 == socket.isIPv6 && !$0.address.isLinkLocal
        }
        let outside = family.filter { !$0.isLoopback }
        return (outside.isEmpty ? family : outside).map(\.address)
    }

    /// Returns the addresses of all interfaces that are up, with port 0.
    static func interfaces() throws(SystemError) -> [Interface] {
        try NetworkFacts.interfaces().filter(\.up).map {
            Interface(address: Address($0.address).with(port: 0), isLoopback: $0.loopback)
        }
    }
}
