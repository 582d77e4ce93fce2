import RTP
import Rooms
import WorkerInterface

/// Handles of one kind that another home uses in a worker here, with ours.
struct GuestHandles<Kind> {
    private var ours: [Handle<Kind>: Handle<Kind>] = [:]
    private var theirs: [Handle<Kind>: Handle<Kind>] = [:]

    var isEmpty: Bool { ours.isEmpty }
    /// All handles of ours.
    var used: [Handle<Kind>] { Array(theirs.keys) }

    subscript(their handle: Handle<Kind>) -> Handle<Kind>? { ours[handle] }
    subscript(our handle: Handle<Kind>) -> Handle<Kind>? { theirs[handle] }

    mutating func add(_ their: Handle<Kind>, as our: Handle<Kind>) {
        ours[their] = our
        theirs[our] = their
    }

    /// Removes a handle of ours, and the other home's.
    mutating func remove(our handle: Handle<Kind>) {
        guard let their = theirs.removeValue(forKey: handle) else { return }
        ours[their] = nil
    }
}

/// Objects of another home's rooms in one worker of this node.
struct GuestWorker {
    /// Publications and slots of a transport, by the home's handles.
    struct Objects {
        var publications: Set<PublicationID> = []
        var slots: Set<SlotID> = []
        /// Room of the transport, and the outcome of its offers, as the home has told them for the
        /// next home.
        var room = ""
        var negotiation: [UInt8]?
        /// Time at which the next home was told that the transport goes on.
        var promised: Instant?
        /// Whether this process has it from the one before it, and no worker has it yet.
        var isSaved = false
        /// Whether the present home is taking it over.
        var isAdopted = false
    }

    /// Number that the home has given to this worker.
    var place: Int
    var transports = GuestHandles<HandleKind.Transport>()
    var publications = GuestHandles<HandleKind.Publication>()
    var slots = GuestHandles<HandleKind.Slot>()
    var objects: [TransportID: Objects] = [:]
    /// Names whose objects have yet to be told: another worker's commands came first.
    var reserved: Set<PublicationID> = []
    /// Mirrors and the publications that they are of, in the home's words.
    var mirrors: [PublicationID: RelayTarget] = [:]
    /// Homes of the mirrors whose publications are at this node, in the home's words.
    var homes: [PublicationID: RelayTarget] = [:]
    /// Last events of the worker, for the next home.
    var facts = GuestFacts()
    /// Objects adopted from a former home, until their state is told.
    var adopted = Adopted()

    /// Objects of a former home, by our handles, and what this home has not heard of them.
    struct Adopted {
        /// Publications that are still under the former home's lease.
        var leases: [PublicationID] = []
        /// Publications and slots that the home does not know; it configures their transport
        /// without them.
        var unknown: (publications: [PublicationID], slots: [SlotID]) = ([], [])
        var facts: [WorkerEvent] = []
    }

    init(place: Int) { self.place = place }

    /// Forgets a handle of ours that no worker uses any longer.
    mutating func forget(_ resource: Room.WorkerResource) {
        switch resource {
        case .transport(_, let id):
            transports.remove(our: id)
            facts.forget(.transport(id))
        case .publication(_, let id):
            publications.remove(our: id)
            for fact in [GuestFacts.Subject.layers(id), .speech(id), .wants(id)] {
                facts.forget(fact)
            }
        case .slot(_, let id):
            slots.remove(our: id)
            for fact in [GuestFacts.Subject.start(id), .hold(id)] { facts.forget(fact) }
        case .subscription, .tap: break
        }
    }
}

/// A fence of another home that workers here have to pass.
struct GuestFence {
    var home: String
    var worker: Int
    var epoch: UInt64
    var waiting: Set<Int>
    var packets: UInt64 = 0
    var freed: [Room.WorkerResource]
}

/// Participants of other homes' rooms at this node.
struct Guests {
    /// Another home with participants here.
    struct Home {
        /// Number of this node's lease on its rooms.
        var lease: Int
        /// Life of the home.
        var boot = ""
        /// Time at which what is left of a lost home ends.
        var until: Instant?
        var workers: [Int: GuestWorker] = [:]
        /// Nodes that are not heard here, as it was told last.
        var unheard: Set<String> = []
        /// Whether its process has begun again and goes on with its rooms itself.
        var isBack = false
        /// Whether this process has them from the one before it, and no worker has them yet.
        var isSaved = false
    }

    var homes: [String: Home] = [:]
    /// Homes that are lost, until others have gone on with their rooms.
    var lost: [FormerHome: Home] = [:]
    private var lastLease = CoreLimits.leases - 1
    /// Transports whose records are not as saved.
    var unsaved: Set<SavedGuest.Key> = []
    /// Whether a mirror has got a handle: the next process gives it to no other one.
    var hasNewMirrors = false
    /// Transports that have records.
    var saved: [FormerHome: Set<SavedGuest.Key>] = [:]
    private(set) var fences: [UInt64: GuestFence] = [:]
    private var tokens: [UInt64: (home: String, token: UInt64)] = [:]
    private var lastNumber: UInt64 = 0

    /// Fences and tokens from here on are those of guests; above are those of statistics samples.
    static let firstNumber: UInt64 = 1 << 61

    var isEmpty: Bool { homes.isEmpty && lost.isEmpty && fences.isEmpty }
    var transportCount: Int {
        (Array(homes.values) + lost.values).reduce(0) { sum, home in
            home.workers.values.reduce(sum) { $0 + $1.transports.used.count }
        }
    }

    /// Returns the number of a new home's lease, the one that was free for longest; `nil` if there
    /// is none.
    mutating func takeLease() -> Int? {
        let taken = Set(homes.values.map(\.lease) + lost.values.map(\.lease))
        let next = (1...CoreLimits.leases).map { (lastLease + $0) % CoreLimits.leases }
        guard let lease = next.first(where: { !taken.contains($0) }) else { return nil }
        lastLease = lease
        return lease
    }

    /// Returns a home whose life is over, or is about to count as such.
    func formerHome(_ former: FormerHome) -> Home? {
        if let lost = lost[former] { return lost }
        guard let home = homes[former.node], home.boot == former.boot else { return nil }
        return home
    }

    /// Changes what is left of a former home.
    mutating func withFormerHome<Result>(
        _ former: FormerHome,
        _ body: (inout Home) -> Result
    ) -> Result? {
        if var home = lost[former] {
            defer { lost[former] = home }
            return body(&home)
        }
        guard var home = homes[former.node], home.boot == former.boot else { return nil }
        defer { homes[former.node] = home }
        return body(&home)
    }

    /// Forgets a handle of ours that no worker uses any longer, whosever it was.
    mutating func forget(_ resource: Room.WorkerResource, in worker: Int) {
        for home in Array(homes.keys) { homes[home]?.workers[worker]?.forget(resource) }
        for home in Array(lost.keys) { lost[home]?.workers[worker]?.forget(resource) }
    }

    mutating func add(_ fence: GuestFence) -> UInt64 {
        lastNumber += 1
        fences[Self.firstNumber + lastNumber] = fence
        return Self.firstNumber + lastNumber
    }

    /// Notes that a worker has passed a guest's fence; returns the fence when all have.
    mutating func pass(_ epoch: UInt64, by worker: Int, _ packets: UInt64) -> GuestFence? {
        fences[epoch]?.waiting.remove(worker)
        fences[epoch]?.packets &+= packets
        guard let fence = fences[epoch], fence.waiting.isEmpty else { return nil }
        return fences.removeValue(forKey: epoch)
    }

    /// Lets no process of a home hear of the fences that were for one before it.
    ///
    /// Each process counts its fences from the start, and would take one for its own.
    mutating func disownFences(of home: String) {
        for epoch in Array(fences.keys) where fences[epoch]?.home == home {
            fences[epoch]?.home = ""
        }
    }

    mutating func add(_ token: UInt64, of home: String) -> UInt64 {
        lastNumber += 1
        tokens[Self.firstNumber + lastNumber] = (home, token)
        return Self.firstNumber + lastNumber
    }

    mutating func take(_ token: UInt64) -> (home: String, token: UInt64)? {
        tokens.removeValue(forKey: token)
    }
}
