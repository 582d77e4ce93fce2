import Testing

@testable import Sockets
@testable import WorkerInterface

struct AddressTests {
    @Test(arguments: ["127.0.0.1:5004", "0.0.0.0:0", "[::1]:65535", "[2001:db8::7]:1", "[::]:5004"])
    func `endpoints read as they are written`(text: String) throws {
        let address = try #require(Address(endpoint: text))
        #expect(address.endpointText == text)
    }

    @Test(arguments: [
        "", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "1.2.3:4",
        "::1:80", "[::1]", "[127.0.0.1]:80", "[::1:80", "[fe80::1%eth0]:80", "host:80",
        "1.2.3.4: 5",
    ])
    func `what is no endpoint is none`(text: String) {
        #expect(Address(endpoint: text) == nil)
    }

    @Test
    func `local addresses are numbered, up to a bound`() throws {
        let socket = UDPSocket(descriptor: -1, address: Address(ipv4: 0, port: 7))
        let fixed = UDPSocket(descriptor: -1, address: Address(ipv4: 0x7f00_0001, port: 7))
        var locals = LocalAddresses([socket, fixed])
        let own = Address(ipv4: 0x7f00_0001, port: 0)
        #expect(locals.number(socket: 1, address: own, interface: 1) == 1)
        #expect(locals[1].source == nil)
        for round in 0..<2 {
            for host in 0..<400 as Range<UInt32> {
                let address = Address(ipv4: 0x0a00_0000 + host, port: 0)
                let number = locals.number(socket: 0, address: address, interface: 3)
                let expected = host < 254 ? UInt16(host) + 2 : 0
                #expect(number == expected, "round \(round)")
                #expect(locals[number].socket == 0)
                #expect(locals[number].source == (host < 254 ? address : nil))
            }
        }
    }
}
