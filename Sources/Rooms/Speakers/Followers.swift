import WorkerInterface

extension Room {
    /// Slots of one participant that follow its active-speaker list.
    struct Following: Sendable, Codable {
        var audio: [SlotName]
        var video: [SlotName]
        var preferences: Preferences

        func slots(_ kind: MediaKind) -> [SlotName] {
            switch kind {
            case .audio: audio
            case .video: video
            }
        }

        var shape: FollowerShape { FollowerShape(audio: audio.count, video: video.count) }
    }

    /// Number of following slots of each kind; followers with equal counts receive the same
    /// streams.
    struct FollowerShape: Hashable, Sendable {
        var audio: Int
        var video: Int

        func count(_ kind: MediaKind) -> Int {
            switch kind {
            case .audio: audio
            case .video: video
            }
        }
    }

    /// Participants with following slots, indexed so that a change visits only those it affects.
    struct Followers: Sendable {
        private(set) var all: [String: Following] = [:]
        private var shapes: [FollowerShape: Set<String>] = [:]
        /// Streams each shape was last assigned from the common list.
        private var settled: [FollowerShape: [MediaKind: [String]]] = [:]
        /// Participants whose slots may need other streams.
        private var stale: Set<String> = []
        /// Number of followers that rights have marked stale, repeatedly or not; for tests.
        private(set) var marks = 0

        var isEmpty: Bool { all.isEmpty }

        /// Participants whose following has changed since it was saved.
        private(set) var unsaved: Set<String> = []

        mutating func takeUnsaved() -> Set<String> {
            defer { unsaved = [] }
            return unsaved
        }

        subscript(id: String) -> Following? {
            get { all[id] }
            set {
                unsaved.insert(id)
                if let shape = all[id]?.shape {
                    shapes[shape]?.remove(id)
                    if shapes[shape]?.isEmpty == true {
                        shapes[shape] = nil
                        settled[shape] = nil
                    }
                }
                all[id] = newValue
                guard let newValue else {
                    stale.remove(id)
                    return
                }
                shapes[newValue.shape, default: []].insert(id)
                stale.insert(id)
            }
        }

        var shapesInUse: [FollowerShape] { Array(shapes.keys) }

        mutating func note(_ id: String) {
            guard all[id] != nil else { return }
            marks += 1
            stale.insert(id)
        }

        mutating func noteAll() {
            marks += all.count
            stale.formUnion(all.keys)
        }

        /// Records the streams for one shape, and marks its followers stale if they changed.
        mutating func note(_ lineUp: [MediaKind: [String]], for shape: FollowerShape) {
            guard settled[shape] != lineUp else { return }
            settled[shape] = lineUp
            stale.formUnion(shapes[shape] ?? [])
        }

        mutating func takeStale() -> [String] {
            guard !stale.isEmpty else { return [] }
            defer { stale = [] }
            return stale.sorted()
        }
    }
}
