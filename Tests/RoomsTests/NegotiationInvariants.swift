/// Checks offer and answer by string operations alone, to share no mistake with the parser.
struct AnswerInvariants {
    private struct Section {
        var head: [String]
        var attributes: [String]

        var mid: String { values("mid:").first ?? "" }
        var port: String { head[1] }
        var formats: [String] { Array(head.dropFirst(3)) }

        func values(_ prefix: String) -> [String] {
            attributes.filter { $0.utf8.starts(with: prefix.utf8) }
                .map { String(Substring($0.utf8.dropFirst(prefix.utf8.count))) }
        }

        func has(_ attribute: String) -> Bool { attributes.contains(attribute) }

        var direction: String {
            attributes.first { ["sendrecv", "sendonly", "recvonly", "inactive"].contains($0) }
                ?? "sendrecv"
        }
    }

    /// Violations in the answer; empty for a correct one.
    private(set) var violations: [String] = []

    init(offer: String, answer: String) {
        check(answer.hasPrefix("v=0\r\n") && answer.hasSuffix("\r\n"), "frame")
        let bytes = Array(answer.utf8)
        let ends = bytes.indices.filter { bytes[$0] == 10 }
        check(ends.allSatisfy { $0 > 2 && bytes[$0 - 1] == 13 && bytes[$0 - 2] != 10 }, "line ends")
        check(bytes.count { $0 == 13 } == ends.count, "carriage returns")
        let (offeredSession, offered) = Self.sections(offer)
        let (session, answered) = Self.sections(answer)
        check(offered.count == answered.count, "number of m-lines")
        check(session.has("ice-lite"), "ice-lite")
        if session.has("extmap-allow-mixed") {
            check(offeredSession.has("extmap-allow-mixed"), "extmap-allow-mixed")
        }
        checkBundle(offeredSession, session, answered)
        for (left, right) in zip(offered, answered) {
            check(left.head[0] == right.head[0] && left.head[2] == right.head[2], "m=")
            check(left.mid == right.mid, "mid")
            if right.port == "0" {
                check(right.has("inactive"), "rejected line is inactive")
            } else {
                checkTransport(right, first: answered.first { $0.port != "0" })
                checkCodecs(left, right)
                checkExtensions(left, right)
                checkDirection(left, right, default: offeredSession.direction)
                checkSimulcast(left, right)
            }
        }
    }

    private static func sections(_ text: String) -> (session: Section, media: [Section]) {
        var sections = [Section(head: [], attributes: [])]
        for bytes in text.utf8.split(separator: 10) {
            let line = bytes.last == 13 ? bytes.dropLast() : bytes
            let value = String(Substring(line.dropFirst(2)))
            if line.starts(with: "m=".utf8) {
                let head = value.split(separator: " ").map(String.init)
                sections.append(Section(head: head, attributes: []))
            } else if line.starts(with: "a=".utf8) {
                sections[sections.count - 1].attributes.append(value)
            }
        }
        return (sections[0], Array(sections.dropFirst()))
    }

    private mutating func check(_ holds: Bool, _ name: String) {
        if !holds { violations.append(name) }
    }

    private mutating func checkBundle(
        _ offered: Section,
        _ session: Section,
        _ answered: [Section]
    ) {
        let accepted = answered.filter { $0.port != "0" }.map(\.mid)
        guard let group = offered.values("group:BUNDLE ").first?.split(separator: " ") else {
            check(accepted.count <= 1, "one transport")
            return
        }
        let bundled = session.values("group:BUNDLE ").first?.split(separator: " ") ?? []
        check(bundled.allSatisfy(group.contains), "bundle is of the offer's")
        check(bundled.map(String.init).sorted() == accepted.sorted(), "bundle is what is accepted")
    }

    private mutating func checkTransport(_ section: Section, first: Section?) {
        let fragment = section.values("ice-ufrag:")
        let password = section.values("ice-pwd:")
        check(fragment.count == 1 && fragment[0].count >= 8, "ufrag")
        check(password.count == 1 && password[0].count >= 24, "pwd")
        check(fragment == first?.values("ice-ufrag:"), "one ufrag")
        check(section.values("fingerprint:sha-256 ").count == 1, "fingerprint")
        check(["active", "passive"].contains(section.values("setup:").first), "setup")
        check(section.has("rtcp-mux"), "rtcp-mux")
        check(!section.values("candidate:").isEmpty, "candidates")
        check(section.has("end-of-candidates"), "end of candidates")
    }

    private mutating func checkCodecs(_ left: Section, _ right: Section) {
        check(!right.formats.isEmpty, "formats")
        check(left.formats.filter(right.formats.contains) == right.formats, "order of formats")
        for format in right.formats {
            let map = right.values("rtpmap:\(format) ")
            check(map.count == 1 && map == left.values("rtpmap:\(format) "), "rtpmap \(format)")
            let name = map.first?.split(separator: "/").first?.lowercased() ?? ""
            let known = ["opus", "red", "vp8", "vp9", "h264", "av1", "rtx"]
            check(known.contains(name), "codec \(name)")
            let parameters = right.values("fmtp:\(format) ")
            if name == "h264" {
                check(parameters.first?.contains("packetization-mode=1") == true, "mode 1")
            }
            if name == "rtx" {
                let apt = parameters.first?.split(separator: "=").last.map(String.init) ?? ""
                check(right.formats.contains(apt), "apt of \(format)")
            }
            for feedback in right.values("rtcp-fb:\(format) ") {
                let isOffered =
                    left.has("rtcp-fb:\(format) \(feedback)") || left.has("rtcp-fb:* \(feedback)")
                check(isOffered, "feedback \(feedback)")
                let all = ["nack", "nack pli", "ccm fir", "transport-cc", "goog-remb"]
                check(all.contains(feedback), "known feedback \(feedback)")
            }
        }
    }

    private mutating func checkExtensions(_ left: Section, _ right: Section) {
        let mirror = ["sendonly": "recvonly", "recvonly": "sendonly"]
        for item in right.values("extmap:") {
            let parts = item.split(separator: " ")
            let id = parts[0].split(separator: "/").map(String.init)
            var expected = id[0]
            if id.count == 2 { expected += "/" + (mirror[id[1]] ?? id[1]) }
            let isOffered = left.values("extmap:").contains {
                $0.hasPrefix("\(expected) \(parts[1])")
            }
            check(isOffered, "extmap \(item)")
        }
    }

    private mutating func checkDirection(_ left: Section, _ right: Section, default: String) {
        let own = ["sendrecv", "sendonly", "recvonly", "inactive"].first(where: left.has)
        let allowed: [String] =
            switch own ?? `default` {
            case "sendonly": ["recvonly", "inactive"]
            case "recvonly": ["sendonly"]
            case "inactive": ["inactive"]
            default: ["sendrecv", "sendonly"]
            }
        check(allowed.contains(right.direction), "direction \(right.direction)")
        let sends = right.direction.hasPrefix("send")
        check(right.values("msid:").count == (sends ? 1 : 0), "msid")
        let sources = Set(right.values("ssrc:").map { $0.split(separator: " ")[0] })
        check(sends ? (1...2).contains(sources.count) : sources.isEmpty, "ssrc")
        for group in right.values("ssrc-group:FID ") {
            check(Set(group.split(separator: " ")) == sources, "FID")
        }
    }

    private mutating func checkSimulcast(_ left: Section, _ right: Section) {
        let rids = right.values("rid:").map { $0.split(separator: " ").map(String.init) }
        check(rids.count <= 4, "number of rids")
        for rid in rids {
            check(rid[1] == "recv", "rid direction")
            let isOffered = left.values("rid:").contains { $0.hasPrefix("\(rid[0]) send") }
            check(isOffered, "rid \(rid[0])")
        }
        let list =
            right.values("simulcast:recv ").first?.split(separator: ";").map(String.init) ?? []
        check(list == rids.map { $0[0] }, "simulcast")
        let isReceiving = right.direction == "recvonly" || right.direction == "sendrecv"
        if !list.isEmpty { check(isReceiving, "simulcast direction") }
    }
}
