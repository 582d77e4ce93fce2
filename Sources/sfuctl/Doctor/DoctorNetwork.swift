import Contract
import WorkerInterface

// Checks of sockets and addresses.
extension DoctorChecks {
    /// Findings about the daemon's sockets, or what sockets would get if there is no daemon.
    var sockets: [Finding] {
        guard let info = facts.daemon?.info else { return [bufferLimits] }
        guard facts.program?.sharesNetwork != false else {
            return [
                .warning(
                    "sockets",
                    "sfud is in another network namespace, such as a container",
                    "run sfuctl doctor there to check its sockets and addresses"
                )
            ]
        }
        guard let all = facts.sockets else {
            return [
                .warning(
                    "sockets",
                    "the kernel does not list sockets",
                    "load the modules udp_diag and tcp_diag"
                ), bufferLimits,
            ]
        }
        let udp = info.udp.compactMap { Address(endpoint: $0) }
        let tcp = (info.tcp ?? []).compactMap { Address(endpoint: $0) }
        let own = udp.compactMap { address in
            all.first { !$0.isTCP && $0.address == address }
        }
        return [
            bound("udp", udp, all.filter { !$0.isTCP }),
            tcp.isEmpty ? nil : bound("tcp", tcp, all.filter(\.isTCP)),
            buffers(of: own, info), drops(of: own),
        ].compactMap(\.self)
    }

    private func bound(
        _ check: String,
        _ wanted: [Address],
        _ sockets: [DoctorFacts.Socket]
    ) -> Finding {
        let missing = wanted.filter { address in !sockets.contains { $0.address == address } }
        guard missing.isEmpty else {
            return .fault(
                check,
                "\(missing.map(\.endpointText).joined(separator: ", ")) is not bound",
                "restart sfud; if it comes back, report it"
            )
        }
        return .ok(check, "\(wanted.map(\.endpointText).joined(separator: ", ")) bound")
    }

    private func buffers(of sockets: [DoctorFacts.Socket], _ info: ServerInfo.Result) -> Finding? {
        guard !sockets.isEmpty else { return nil }
        var words: [String] = []
        var remedies: [String] = []
        for (name, limit, path, sysctl) in [
            ("receive", "receiveBufferBytes", \DoctorFacts.Socket.receiveBuffer, "rmem_max"),
            ("send", "sendBufferBytes", \DoctorFacts.Socket.sendBuffer, "wmem_max"),
        ] {
            guard let wanted = info.limits[limit],
                let least = sockets.map({ $0[keyPath: path] }).min()
            else { continue }
            words.append("\(name) \(Self.bytes(least)) of \(Self.bytes(wanted))")
            if least < wanted { remedies.append("sysctl -w net.core.\(sysctl)=\(wanted)") }
        }
        let text = words.joined(separator: ", ")
        guard remedies.isEmpty else {
            let advice = remedies.joined(separator: "; ") + "; then restart sfud"
            return .warning("buffers", text, advice)
        }
        return .ok("buffers", text)
    }

    /// Buffers that the kernel would grant a daemon with the usual limits.
    private var bufferLimits: Finding {
        let kernel = facts.kernel
        guard let receive = kernel.receiveBufferLimit, let send = kernel.sendBufferLimit else {
            return .warning("buffers", "the kernel's limits cannot be read")
        }
        let text = "sockets may have receive \(Self.bytes(receive)), send \(Self.bytes(send))"
        let short = [("rmem_max", receive), ("wmem_max", send)].filter { $0.1 < Self.usualBuffer }
        guard short.isEmpty else {
            let remedies = short.map { "sysctl -w net.core.\($0.0)=\(Self.usualBuffer)" }
            return .warning("buffers", text, remedies.joined(separator: "; "))
        }
        return .ok("buffers", text)
    }

    private func drops(of sockets: [DoctorFacts.Socket]) -> Finding? {
        let drops = sockets.reduce(0) { $0 + $1.drops }
        guard drops > 0 else { return nil }
        return .warning(
            "drops",
            "the kernel has dropped \(drops) datagrams since the sockets were opened",
            "if sfud_kernel_drops_total still grows: larger buffers, or more workers"
        )
    }

    /// Findings about the addresses that answers to clients name.
    var addresses: [Finding] {
        guard let info = facts.daemon?.info, facts.program?.sharesNetwork != false else {
            return []
        }
        guard let settings = facts.program?.settings, settings.trouble == nil else {
            let cause = facts.program?.settings?.trouble ?? "the command line cannot be read"
            return [
                .warning("addresses", "those of answers are not known: \(cause)", Self.asRoot)
            ]
        }
        let announced = settings["announce"].compactMap { Address(text: $0) }
        let bound = info.udp.compactMap { Address(endpoint: $0) }
        var findings = announced.isEmpty ? [] : [announcement(announced, bound)]
        // An announced address replaces those of its family.
        let families = Set(announced.map(\.isIPv6))
        let rest = bound.filter { !families.contains($0.isIPv6) }
        if !rest.isEmpty { findings.append(listening(rest)) }
        return findings
    }

    private func announcement(_ announced: [Address], _ bound: [Address]) -> Finding {
        let names = announced.map(\.text).joined(separator: ", ")
        if announced.allSatisfy(\.isLoopback) {
            return .warning(
                "addresses",
                "answers name \(names), which only this machine reaches",
                "--announce takes the address by which clients reach this machine"
            )
        }
        let mapped = announced.filter { address in
            !facts.interfaces.contains { $0.address.with(port: 0) == address.with(port: 0) }
        }
        guard !mapped.isEmpty else {
            return .ok("addresses", "answers name \(names), addresses of this machine")
        }
        let ports = Set(bound.map(\.port)).sorted()
        let range = ports.count > 1 ? "\(ports[0]) to \(ports[ports.count - 1])" : "\(ports[0])"
        return .ok(
            "addresses",
            "answers name \(names), not all of this machine",
            "a NAT has to map UDP \(range) of \(mapped.map(\.text).joined(separator: ", ")) to it"
        )
    }

    private func listening(_ bound: [Address]) -> Finding {
        let own = facts.interfaces
        let lost = bound.filter { address in
            !address.isWildcard
                && !own.contains { $0.address.with(port: 0) == address.with(port: 0) }
        }
        guard lost.isEmpty else {
            return .fault(
                "addresses",
                "no interface has \(Self.texts(lost)) any more",
                "restart sfud with the address that this machine has now"
            )
        }
        var named: [Address] = []
        for address in bound where !address.isWildcard { named.append(address) }
        for address in bound where address.isWildcard {
            let family = own.filter {
                $0.address.isIPv6 == address.isIPv6 && !$0.address.isLinkLocal
            }
            let outside = family.filter { !$0.isLoopback }
            named += (outside.isEmpty ? family : outside).map(\.address)
        }
        let names = Self.texts(named)
        guard !named.isEmpty else {
            return .fault(
                "addresses",
                "answers name no address, as no interface has one",
                "bring an interface up, then restart sfud; or name an address by --announce"
            )
        }
        if named.allSatisfy(\.isLoopback) {
            return .warning(
                "addresses",
                "answers name \(names), which only this machine reaches",
                "listen on other addresses by --udp, or name one by --announce"
            )
        }
        if named.allSatisfy({ $0.isLoopback || $0.isPrivate }) {
            return .warning(
                "addresses",
                "answers name \(names), which only this network reaches",
                "for clients on the Internet name the public address by --announce"
            )
        }
        return .ok("addresses", "answers name \(names)")
    }

    private static func texts(_ addresses: [Address]) -> String {
        var texts: [String] = []
        for text in addresses.map(\.text) where !texts.contains(text) { texts.append(text) }
        return texts.joined(separator: ", ")
    }

    /// Bytes that sfud asks for by default, in each direction.
    private static let usualBuffer = 4 << 20
}

extension Address {
    /// Whether it is of a private network or of a provider's NAT (RFC 1918, RFC 6598, RFC 4193).
    var isPrivate: Bool {
        guard let ipv4 else { return high >> 57 == 0xfc >> 1 }
        return ipv4 >> 24 == 10 || ipv4 >> 20 == 0xac1 || ipv4 >> 16 == 0xc0a8
            || ipv4 >> 22 == 0x6440 >> 6
    }
}
