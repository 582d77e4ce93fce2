import RTP
import WorkerInterface

/// Publication and slot of each m-line, kept or new, with its negotiated direction.
struct MediaDirections: Sendable {
    /// State to keep, one entry for each m-line.
    private(set) var lines: [NegotiatedMediaLine] = []
    /// Negotiated direction of each m-line from the client's view.
    private(set) var directions: [Direction] = []
    private(set) var refusals: [String?] = []
    private let repairs: [Bool]
    private let peerSSRCs: Set<SSRC>

    init(previous: [NegotiatedMediaLine], offered: OfferedLines, policy: (OfferedMedia) -> String?)
    {
        repairs = offered.lines.map { $0.content?.formats.repairs ?? false }
        peerSSRCs = Set(offered.lines.flatMap { $0.media.sources.map(\.ssrc) })
        // This array lives as long as the transport, so it is no larger than needed.
        lines.reserveCapacity(offered.lines.count)
        for (index, line) in offered.lines.enumerated() {
            var agreed = NegotiatedMediaLine(
                mid: line.mid,
                media: line.media.media,
                isRejected: line.content == nil
            )
            var direction = Direction.inactive
            var refusal: String?
            if let content = line.content {
                agreed.formats = content.formats.mappings
                agreed.extensions = content.extensions.all
                direction = line.direction
                if direction.sends {
                    refusal = policy(OfferedMedia(mid: line.mid, kind: content.kind))
                }
                if refusal != nil {
                    direction = Direction(sends: false, receives: direction.receives)
                }
            }
            if index < previous.count, previous[index].mid == line.mid {
                agreed.publication = direction.sends ? previous[index].publication : nil
                agreed.slot = direction.receives ? previous[index].slot : nil
            }
            lines.append(agreed)
            directions.append(direction)
            refusals.append(refusal)
        }
    }

    /// Allocates identifiers for new publications and slots; on failure allocates none.
    mutating func allocate(
        from identifiers: inout WorkerIdentifiers,
        ssrcs: inout SSRCGenerator
    ) throws(SDPError) {
        var publications: [PublicationID] = []
        var slots: [SlotID] = []
        var isComplete = true
        for index in lines.indices where isComplete {
            if directions[index].sends, lines[index].publication == nil {
                lines[index].publication = identifiers.publications.allocate()
                lines[index].publication.map { publications.append($0) }
                isComplete = lines[index].publication != nil
            }
            if isComplete, directions[index].receives, lines[index].slot == nil {
                let pair = freePair(for: lines[index].media)
                lines[index].slot = identifiers.slots.allocate().map { id in
                    slots.append(id)
                    let ssrc = ssrcs.next(avoiding: peerSSRCs)
                    return NegotiatedMediaLine.Slot(id: id, ssrc: ssrc, pair: pair)
                }
                isComplete = lines[index].slot != nil
            }
            if repairs[index], lines[index].slot != nil, lines[index].slot?.rtxSSRC == nil {
                lines[index].slot?.rtxSSRC = ssrcs.next(avoiding: peerSSRCs)
            }
        }
        guard !isComplete else { return }
        publications.forEach { identifiers.publications.release($0) }
        slots.forEach { identifiers.slots.release($0) }
        throw SDPError(
            line: 0,
            cause: "no publication or slot is left for all m-lines",
            reason: .exhausted
        )
    }

    /// Returns the lowest number that no slot of this kind uses.
    private func freePair(for media: String) -> Int {
        let taken = Set(lines.lazy.filter { $0.media == media }.compactMap(\.slot?.pair))
        var pair = 0
        while taken.contains(pair) { pair += 1 }
        return pair
    }

    /// Returns the publications and slots of `previous` that are no longer in use.
    func ended(
        of previous: [NegotiatedMediaLine]
    ) -> (publications: [PublicationID], slots: [SlotID]) {
        var ended: (publications: [PublicationID], slots: [SlotID]) = ([], [])
        for (index, line) in previous.enumerated() {
            if let publication = line.publication, lines[index].publication != publication {
                ended.publications.append(publication)
            }
            if let slot = line.slot, lines[index].slot?.id != slot.id {
                ended.slots.append(slot.id)
            }
        }
        return ended
    }
}
