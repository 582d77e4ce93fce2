import SFU
import TestSupport

/// Fault somewhere between the publisher's encoder and the viewer's screen.
enum PlantedFault: String, CaseIterable, Sendable {
    /// Nothing of the publisher arrives, what it sent is lost; or only half of it arrives; or all
    /// of it arrives afterwards.
    case uplinkDead, uplinkLoss, uplinkHeld
    /// The encoder makes no frame, alone or with the microphone; or no keyframe after a short
    /// outage of the viewer's path.
    case encoderStopped, publisherPaused, keyframeRefused
    /// The worker does nothing, discards what it receives, or has too much to do.
    case stall, stale, overload
    /// Nothing reaches the viewer, and nothing of it is heard; or most of it is lost; or the path
    /// is too narrow.
    case downlinkDead, downlinkLoss, downlinkNarrow
    case decoderBroken
}

/// Faults planted in a call, each in a period of it.
struct PlantedFaults {
    private var periods: [(fault: PlantedFault, seconds: Range<Double>)] = []
    private var held: [(bytes: [UInt8], rollover: UInt64)] = []
    private var random = SeededRandom(seed: 1)

    mutating func plant(_ fault: PlantedFault, in seconds: Range<Double>, seed: UInt64) {
        periods.append((fault, seconds))
        random = SeededRandom(seed: seed)
    }

    func isOn(_ fault: PlantedFault, at second: Double) -> Bool {
        periods.contains { $0.fault == fault && $0.seconds.contains(second) }
    }

    /// Returns the publisher's packets that arrive now.
    mutating func pass(
        _ packets: [(bytes: [UInt8], rollover: UInt64)],
        at second: Double
    ) -> [(bytes: [UInt8], rollover: UInt64)] {
        if isOn(.uplinkDead, at: second) || isOn(.publisherPaused, at: second) { return [] }
        if isOn(.uplinkHeld, at: second) || isOn(.stall, at: second) {
            held += packets
            return []
        }
        defer { held = [] }
        guard isOn(.uplinkLoss, at: second) else { return held + packets }
        return packets.filter { _ in random.unit() > 0.5 }
    }
}

extension LayeredCall {
    /// Lets the parts of the call that faults concern follow them.
    mutating func plant(at second: Double) {
        source.isStopped =
            faults.isOn(.encoderStopped, at: second) || faults.isOn(.publisherPaused, at: second)
        call.staleMedia = faults.isOn(.stale, at: second) ? .everything : .nothing
        viewer.isBroken = faults.isOn(.decoderBroken, at: second)
        link.isDead = faults.isOn(.downlinkDead, at: second)
        let isLossy = faults.isOn(.downlinkLoss, at: second)
        link.bottleneck.properties.loss = isLossy ? 0.7 : loss
    }
}
