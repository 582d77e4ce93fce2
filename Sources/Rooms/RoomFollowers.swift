import WorkerInterface

extension Room {
    /// One participant's slots that follow its list.
    struct Following: Sendable {
        var audio: [SlotName]
        var video: [SlotName]
        var wishes: Wishes

        func slots(_ kind: MediaKind) -> [SlotName] {
            switch kind {
            case .audio: audio
            case .video: video
            }
        }

        var shape: FollowerShape { FollowerShape(audio: audio.count, video: video.count) }
    }

    /// How many slots somebody follows with: all with as many carry the same.
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

    /// Those whose slots follow, so that a change costs what it changes.
    struct Followers: Sendable {
        private(set) var all: [String: Following] = [:]
        private var shapes: [FollowerShape: Set<String>] = [:]
        /// What the common list came to for each shape when its followers were turned last.
        private var settled: [FollowerShape: [MediaKind: [String]]] = [:]
        /// Whose slots may have to carry something else.
        private var stale: Set<String> = []

        var isEmpty: Bool { all.isEmpty }

        subscript(id: String) -> Following? {
            get { all[id] }
            set {
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

        mutating func note(_ id: String) { if all[id] != nil { stale.insert(id) } }

        mutating func noteAll() { stale.formUnion(all.keys) }

        /// Says what the common list is to all followers of one shape.
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
