import RTP
import WorkerInterface

/// The relays of a worker: packets and requests that go to other workers and come from them.
struct Relays: ~Copyable {
    /// Counters of this part; the worker's statistics contain them.
    struct Counters {
        var relayedIn: UInt64 = 0
        var relayedOut: UInt64 = 0
    }

    /// Publications with a mirror whose relaying is on hold until it has asked for held audio.
    var held = UncountedArray<PublicationIndex>()
    /// Publications with a mirror that has asked for the warm picture.
    var pictureRequests = UncountedArray<PublicationIndex>()
    /// Keyframe requests for the homes at other nodes: publication and position of the encoding.
    var linkRequests: [(PublicationIndex, Int)] = []
    /// Publications whose mirrors have not all been told which encodings are withheld.
    var withholdings = UncountedArray<PublicationIndex>()
    /// Number of publications that are relayed to other workers.
    var relayedCount = 0
    var counters = Counters()
}
