import RTP
import WorkerInterface

/// State of one slot's video at one moment, from which its detector judges.
struct FreezeEvidence: BitwiseCopyable {
    /// Identity of a stretch in which the viewer is to have video; a mute or another binding ends
    /// it.
    struct Stretch: Equatable, BitwiseCopyable {
        var bindings: UInt32
        var openedAt: Instant
    }

    /// Reason why no packet has been forwarded for longer than usual.
    enum Standstill: Equatable, BitwiseCopyable {
        /// Nothing arrives of the encoding; whether anything else of its publisher does.
        case silence(isHeard: Bool)
        case known(FreezeReason)
    }

    /// Stretch without packets of the followed encoding, and the reason that it showed in the end.
    struct Silence: BitwiseCopyable {
        var from: Instant
        var to: Instant
        var reason: FreezeReason
    }

    /// Time in which the worker did nothing.
    struct Stall: BitwiseCopyable {
        var from: Instant
        var to: Instant
    }

    var now: Instant
    /// `nil` while the viewer is to have no video.
    var stretch: Stretch?
    /// Arrival at sfud of the newest packet that was forwarded.
    var leftAt = Instant(nanoseconds: 0)
    /// Time at which a frame left that is newer than the last acknowledged one, if one has.
    ///
    /// Packets of a publisher that marks no frames are never acknowledged as such.
    var frameLeftAt: Instant?
    /// Mean interval of the forwarded layer's frames, in nanoseconds.
    var interval: Int64 = 33_000_000
    /// Whether pauses of the publisher are part of its content, as with a screen.
    var mayRest = false
    /// Present if nothing was forwarded for `Self.usualRest(interval)`.
    var standstill: Standstill?
    /// Last silence of the encoding.
    var silence: Silence?
    /// Time since which packets of the publisher are missing, and their number.
    var missingSince: Instant?
    var missing: Int32 = 0
    /// Whether the publisher was asked for a keyframe and has not sent it in time.
    var isKeyframeOverdue = false
    /// Arrival of the oldest packet that waits in the pacer.
    var pacedSince: Instant?
    /// Arrival of the encoding's last keyframe.
    var keyframeAt: Instant?
    var stall: Stall?
    var roundTrip: Int64 = 100_000_000

    /// Nanoseconds without a packet that are usual between frames.
    static func usualRest(_ interval: Int64) -> Int64 { interval &+ interval / 2 &+ 50_000_000 }
}
