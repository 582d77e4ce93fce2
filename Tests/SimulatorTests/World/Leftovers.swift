@testable import SFU

extension Core {
    /// What a worker still has that rooms had needed, in words; empty: nothing.
    var leftovers: String {
        let counts = [
            ("transports", transports.count), ("publications", publications.count),
            ("destinations", destinations.count), ("slots", slots.count),
            ("records", slotRecords.count), ("encodings", encodings.count),
            ("fragments", fragments.count), ("mirrors", mirrors.count),
            ("paths", paths.count),
            // One is kept for RTCP.
            ("packets", pool.used - 1),
        ]
        return counts.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    }
}

extension Core {
    /// What every slot with video is at, for who looks into a history that went wrong.
    var videoSlots: [String] {
        (0..<slots.capacity).filter { slots.isOccupied($0) && slots[$0].kind == .video }.map {
            let publication = Int(slots[$0].publication)
            let canSend = transports[slots[$0].transport].canSend
            var words = "slot \($0): \(slots[$0].source), open \(slots[$0].isOpen)"
            words += ", target \(slotRecords[$0].target), canSend \(canSend)"
            guard publication >= 0 else { return words }
            words += "; publication \(publication), open \(publications[publication].isOpen)"
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                words += "; encoding \(encoding)\(encodings[encoding].isLive ? ", live" : "")"
                words += "\(encodings[encoding].isOffered ? ", offered" : "")"
                words += ", \(encodings[encoding].rate), \(encodings[encoding].keyframes)"
            }
            return words
        }
    }
}
