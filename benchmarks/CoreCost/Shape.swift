/// Who sends to whom, and what one batch brings.
enum Shape: String, CaseIterable {
    /// One publisher and its viewers; a batch is a frame of six packets.
    case livestream
    /// Everybody sends and gets everybody else; a batch has two packets of each.
    case meeting

    /// Those who publish, of a room with this many viewers.
    func publishers(viewers: Int) -> Int {
        switch self {
        case .livestream: 1
        case .meeting: viewers
        }
    }

    /// Packets of one publisher in a batch.
    var packetsPerBatch: Int {
        switch self {
        case .livestream: 6
        case .meeting: 2
        }
    }
}
