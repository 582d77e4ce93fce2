import Contract
import JSON
import LoadPeer
import RTP
import SFU
import TestSupport
import WorkerInterface

/// A participant in the callers' view.
final class SimulatedParticipant {
    struct Subscription {
        var id: String
        var stream: String
        var publisher: UInt32
        /// Kinds that slots were free for.
        var kinds: Set<MediaKind>
    }

    let number: Int
    let name: String
    let isModerator: Bool
    let publishes: Bool
    /// Whether it sends two encodings of its video.
    let isSimulcast: Bool
    let slots: Int
    let takesRTX: Bool
    let tellsArrivals: Bool
    /// Whether its slots follow the active speakers.
    let follows: Bool
    let isAdversary: Bool
    /// Whether it negotiates absolute send times.
    var takesSendTimes = false
    var client: WorldClient?
    /// Whether a call about it is pending.
    var isBusy = false
    var hasJoined = false
    /// Whether a call about it was lost, or its connection ended.
    var isUnknown = false
    var stream: String?
    var subscriptions: [Subscription] = []
    var muted: Set<MediaKind> = []
    var switchedOff: Set<MediaKind> = []
    var onlyReceives = false
    var onlyWatches = false
    var offers = 0

    init(number: Int, publishes: Bool, using random: inout SeededRandom) {
        self.number = number
        self.publishes = publishes
        name = "person-\(number)"
        isModerator = random.chance(0.2)
        isSimulcast = random.chance(0.4)
        slots = Int(random.pick(1...3))
        takesRTX = random.chance(0.8)
        tellsArrivals = random.chance(0.25)
        follows = random.chance(0.2)
        isAdversary = false
    }

    /// Makes an adversary, which negotiates everything that a client may.
    init(adversary number: Int) {
        self.number = number
        name = "adversary-\(number)"
        publishes = true
        isModerator = false
        isSimulcast = false
        slots = 4
        takesRTX = true
        tellsArrivals = true
        follows = false
        isAdversary = true
        takesSendTimes = true
    }

    var mayWatch: Bool { isFree && !follows || isAdversary && hasJoined && !isUnknown }

    /// Number of subscriptions; an adversary has one, and its other slots follow active speakers.
    var watchLimit: Int { isAdversary ? 1 : slots }

    /// Whether it needs a lecture's floor, and may publish with it.
    var mayTakeFloor: Bool { !isModerator && !onlyReceives && !onlyWatches }

    var isFree: Bool { hasJoined && !isBusy && !isUnknown && !isAdversary }
}

extension MediaKind {
    /// The kind's name in the contract.
    var word: String { self == .audio ? "audio" : "video" }
}
