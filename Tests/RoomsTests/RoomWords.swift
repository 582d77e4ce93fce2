import Rooms
import WorkerInterface

// Commands in short words: a handle is a letter and its place, `t0`, `p2`, `s1`; another worker's
// publication is `1:p2`.

extension RoomDriver {
    /// Commands to each worker, in order, and the handles that become free.
    static func words(_ change: Room.Change) -> [String] {
        var words: [String] = []
        for worker in change.commands.keys.sorted() {
            for command in change.commands[worker] ?? [] {
                words.append("\(worker) \(command.words)")
            }
        }
        for case .publication(let worker, let id) in change.freed {
            words.append("\(worker) free \(id.word("p"))")
        }
        return words
    }
}

extension WorkerCommand {
    fileprivate var words: String {
        switch self {
        case .configure(let id, _): "configure \(id.word("t"))"
        case .close(let id): "close \(id.word("t"))"
        case .resume(let id, _): "resume \(id.word("t"))"
        case .endResumption: "end resumption"
        case .postponeResumption: "postpone resumption"
        case .gate(let id, let open): "gate \(id.word("p")) \(open ? "open" : "closed")"
        case .bind(let id, nil): "bind \(id.word("s")) nothing"
        case .bind(let id, let binding?):
            "bind \(id.word("s")) \(binding.publication.word("p"))"
                + (binding.open ? "" : " closed")
        case .limit(let id, _): "limit \(id.word("p"))"
        case .feature(let id, let isFeatured):
            "\(isFeatured ? "feature" : "unfeature") \(id.word("p"))"
        case .mirror(let mirror):
            "mirror \(mirror.configuration.id.word("p")) of \(mirror.home.word)"
                + (mirror.open ? " open" : " closed")
        case .unmirror(let id): "unmirror \(id.word("p"))"
        case .relay(let id, let targets):
            (["relay", id.word("p"), "to"] + targets.map(\.word)).joined(separator: " ")
        case .hold(let id, let target): "hold \(id.word("p")) for \(target.word)"
        case .explain, .report, .reportTransports, .fence, .tap, .link, .lease: "\(self)"
        }
    }
}

extension RelayTarget {
    fileprivate var word: String { "\(worker):\(publication.word("p"))" }
}

extension Handle {
    fileprivate func word(_ letter: String) -> String { "\(letter)\(index)" }
}
