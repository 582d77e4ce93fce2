import RTP
import WorkerInterface

/// The RTCP endpoint of a worker: it reads what peers report, answers it, and reports to them.
struct RTCPEndpoint: ~Copyable {
    /// Counters of this part; the worker's statistics contain them.
    struct Counters {
        var rtcpIn: UInt64 = 0
        var rtcpOut: UInt64 = 0
        var rtxOut: UInt64 = 0
        var rtxInFlight: UInt64 = 0
        var rtxOverBudget: UInt64 = 0
        var datagramsOut: UInt64 = 0
        var bytesOut: UInt64 = 0
        var feedbackOverBudget: UInt64 = 0
        var paths = PathSamples()
    }

    var counters = Counters()
}
