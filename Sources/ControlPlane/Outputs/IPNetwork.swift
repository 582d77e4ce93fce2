import WorkerInterface

/// IP network in CIDR notation: `10.0.0.0/8`, `fd00::/8`, or a single address.
package struct IPNetwork: Hashable, Sendable {
    private let first: Address
    /// Prefix length of the 128-bit address; IPv4 addresses are IPv4-mapped.
    private let length: Int

    /// Returns `nil` for invalid text, or if bits beyond the prefix are set.
    package init?(text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = Address(text: String(parts[0])) else { return nil }
        let bits = address.isIPv6 ? 128 : 32
        var length = bits
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ (48...57).contains($0) }),
                let number = Int(parts[1]), (0...bits).contains(number)
            else { return nil }
            length = number
        }
        self.length = length + 128 - bits
        first = address
        let (high, low) = mask
        guard address.high & ~high == 0, address.low & ~low == 0 else { return nil }
    }

    func contains(_ address: Address) -> Bool {
        let (high, low) = mask
        return address.high & high == first.high && address.low & low == first.low
    }

    /// The loopback networks: this machine alone.
    package static let loopback = ["127.0.0.0/8", "::1"].compactMap(IPNetwork.init(text:))

    package var text: String {
        let length = first.isIPv6 ? length : length - 96
        return length == (first.isIPv6 ? 128 : 32) ? first.text : "\(first.text)/\(length)"
    }

    private var mask: (high: UInt64, low: UInt64) {
        (
            length >= 64 ? .max : ~(UInt64.max >> UInt64(length)),
            length <= 64 ? 0 : ~(UInt64.max >> UInt64(length - 64))
        )
    }
}
