import RTP

@testable import SFU

extension Call {
    /// Returns the feedback that a publisher has received on its packets.
    func feedback(at peer: Int) -> Feedback {
        var seen = Feedback()
        for bytes in peers[peer].reports {
            var blocks = RTCPBlocks(bytes.span)
            while let block = blocks.next() {
                if let reports = try? ReceptionReports(block) {
                    for index in 0..<reports.count where reports[index].ssrc.rawValue == 0x2222 {
                        seen.reports += 1
                        seen.lost = Int(reports[index].cumulativeLost)
                        seen.highest = Int(reports[index].highestSequence & 0xffff)
                    }
                } else if var arrivals = try? TransportFeedback(block) {
                    while arrivals.nextArrived() != nil { seen.arrivals += 1 }
                }
            }
        }
        return seen
    }

    struct Feedback {
        var reports = 0
        var lost = 0
        var highest = 0
        /// Number of packets reported as received (transport-wide feedback).
        var arrivals = 0
    }
}
