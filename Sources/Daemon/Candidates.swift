import CKernel
import Kernel
import WorkerInterface

/// Which addresses an answer names for a socket.
enum Candidates {
    /// An address that this machine has.
    struct Interface: Equatable {
        var address: Address
        var isLoopback: Bool
    }

    /// Best first: IPv4 before IPv6, as far as `sockets` has it so.
    ///
    /// `announce` takes the place of what is listened on, family by family.
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
        // A link-local address means nothing to a peer that cannot name our interface.
        let family = interfaces.filter {
            $0.address.isIPv6 == socket.isIPv6 && !$0.address.isLinkLocal
        }
        let outside = family.filter { !$0.isLoopback }
        return (outside.isEmpty ? family : outside).map(\.address)
    }

    /// The addresses of all interfaces that are up.
    static func interfaces() throws(SystemError) -> [Interface] {
        var found = [kernel_interface](repeating: kernel_interface(), count: 64)
        var count = try enumerate(&found)
        if count > found.count {
            found = [kernel_interface](repeating: kernel_interface(), count: count)
            count = try enumerate(&found)
        }
        return found.prefix(count).filter(\.up).map {
            Interface(address: Address($0.address).with(port: 0), isLoopback: $0.loopback)
        }
    }

    private static func enumerate(_ found: inout [kernel_interface]) throws(SystemError) -> Int {
        let capacity = Int32(found.count)
        let count = unsafe kernel_interface_addresses(&found, capacity)
        return Int(try SystemError.check(count, "the interfaces' addresses"))
    }
}
