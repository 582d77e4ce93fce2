package import CKernel

extension Address {
    /// Parses an IPv4 or IPv6 address such as `127.0.0.1` or `::1`.
    ///
    /// Returns `nil` for anything else: brackets, ports and zones are not part of it.
    package init?(text: String, port: UInt16 = 0) {
        var address = kernel_address()
        guard unsafe kernel_address_parse(text, &address) else { return nil }
        self.init(high: address.high, low: address.low, port: port)
    }

    /// Parses an address with its port: `127.0.0.1:5004` or `[::1]:5004`.
    package init?(endpoint: String) {
        guard let colon = endpoint.lastIndex(of: ":"),
            let port = UInt16(decimal: endpoint[endpoint.index(after: colon)...])
        else { return nil }
        let host = endpoint[..<colon]
        if host.first == "[", host.last == "]" {
            self.init(text: String(host.dropFirst().dropLast()), port: port)
            if ipv4 != nil { return nil }
        } else {
            // Without brackets the end of an IPv6 address is ambiguous.
            guard !host.contains(":") else { return nil }
            self.init(text: String(host), port: port)
        }
    }

    /// Address without the port: `127.0.0.1`, `::1`.
    package var text: String {
        var bytes = [CChar](repeating: 0, count: Int(KERNEL_ADDRESS_TEXT))
        let length = unsafe kernel_address_format(kernel, &bytes)
        return String(
            decoding: bytes.prefix(Int(length)).map(UInt8.init(bitPattern:)),
            as: UTF8.self
        )
    }

    /// Address with the port: `127.0.0.1:5004`, `[::1]:5004`.
    package var endpointText: String { ipv4 == nil ? "[\(text)]:\(port)" : "\(text):\(port)" }

    package var isIPv6: Bool { ipv4 == nil }

    package var isWildcard: Bool { ipv4 == 0 || (high == 0 && low == 0) }

    package var isLoopback: Bool {
        guard let ipv4 else { return high == 0 && low == 1 }
        return ipv4 >> 24 == 127
    }

    /// Whether it is link-local, ambiguous without an interface (RFC 4291 §2.5.6, RFC 3927).
    package var isLinkLocal: Bool {
        guard let ipv4 else { return high >> 54 == 0xfe80 >> 6 }
        return ipv4 >> 16 == 0xa9fe
    }

    package func with(port: UInt16) -> Self { Self(high: high, low: low, port: port) }

    package init(_ kernel: kernel_address) {
        self.init(high: kernel.high, low: kernel.low, port: kernel.port)
    }

    package var kernel: kernel_address { kernel_address(high: high, low: low, port: port) }
}

extension UInt16 {
    /// Parses digits only: no sign, no space.
    fileprivate init?(decimal text: Substring) {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        self.init(text)
    }
}
