import TestSupport

/// A download over TCP with NewReno congestion control.
///
/// Slow start, additive increase, halving at most once a round trip, a retransmission timeout of a
/// second. Selective acknowledgement is assumed.
final class TCPFlow: SimulatedFlow {
    struct Settings {
        var startSecond = 0.0
        var stopSecond = Double.infinity
        /// Range of file sizes in bytes, with pauses between; `nil` for one endless download.
        var files: ClosedRange<Double>?
        var meanPauseSeconds = 10.0
        var backDelayMilliseconds = 50.0
    }

    private static let segment = 1_500

    private let settings: Settings
    private let forward: Bottleneck
    private var random: SeededRandom
    private var window = 10.0
    private var threshold = Double.infinity
    private var next = 0
    private var recover = -1
    /// Times at which acknowledgements return, in order; lost packets have none.
    private var acknowledgements: [(at: Int64, number: Int)] = []
    private var firstAcknowledgement = 0
    private var outstanding: [Int] = []
    private var lastHeard: Int64 = 0
    private var remaining = 0.0
    private var resumes: Int64
    private(set) var received = 0

    init(_ settings: Settings, forward: Bottleneck, seed: UInt64) {
        self.settings = settings
        self.forward = forward
        random = SeededRandom(seed: seed)
        resumes = Int64(settings.startSecond * 1e9)
        if settings.files == nil {
            remaining = .infinity
        } else {
            resumes += Int64(random.unit() * settings.meanPauseSeconds * 1e9)
        }
    }

    var estimate: Double { 0 }

    func step(at time: Int64) {
        takeAcknowledgements(at: time)
        let second = Double(time) / 1e9
        guard time >= resumes, second < settings.stopSecond else { return }
        if remaining <= 0 {
            guard let files = settings.files else { return }
            if outstanding.isEmpty { begin(files, at: time) }
            return
        }
        if !outstanding.isEmpty, time - lastHeard > 1_000_000_000 { timeOut(at: time) }
        while Double(outstanding.count) < window, remaining > 0 { send(at: time) }
        if remaining <= 0, settings.files != nil {
            resumes = time + Int64(-naturalLog(1 - random.unit()) * settings.meanPauseSeconds * 1e9)
        }
    }

    private func begin(_ files: ClosedRange<Double>, at time: Int64) {
        remaining = files.lowerBound + random.unit() * (files.upperBound - files.lowerBound)
        window = 10
        threshold = .infinity
        lastHeard = time
    }

    private func send(at time: Int64) {
        if outstanding.isEmpty { lastHeard = time }
        outstanding.append(next)
        if let arrival = forward.send(bytes: Self.segment, at: time) {
            let back = Int64(settings.backDelayMilliseconds * 1e6)
            acknowledgements.append((arrival + back, next))
        }
        next += 1
        remaining -= Double(Self.segment)
    }

    private func takeAcknowledgements(at time: Int64) {
        while firstAcknowledgement < acknowledgements.count,
            acknowledgements[firstAcknowledgement].at <= time
        {
            let number = acknowledgements[firstAcknowledgement].number
            firstAcknowledgement += 1
            lastHeard = time
            guard let place = outstanding.firstIndex(of: number) else { continue }
            outstanding.remove(at: place)
            received += Self.segment
            window += window < threshold ? 1 : 1 / window
            // Overtaken by three: it is lost, and sent again as the next number.
            while let oldest = outstanding.first, oldest < number - 3 {
                outstanding.removeFirst()
                remaining += Double(Self.segment)
                guard oldest > recover else { continue }
                recover = next
                threshold = max(window / 2, 2)
                window = threshold
            }
        }
        if firstAcknowledgement > 4_096 {
            acknowledgements.removeFirst(firstAcknowledgement)
            firstAcknowledgement = 0
        }
    }

    private func timeOut(at time: Int64) {
        remaining += Double(outstanding.count * Self.segment)
        outstanding.removeAll()
        threshold = max(window / 2, 2)
        window = 1
        recover = next
        lastHeard = time
    }

    private func naturalLog(_ value: Double) -> Double {
        // The series is precise enough for a random pause.
        var result = 0.0
        var term = value
        while term < 0.5 {
            term *= 2
            result -= 0.693_147_180_559_945_3
        }
        let ratio = (term - 1) / (term + 1)
        return result + 2 * ratio * (1 + ratio * ratio * (1 / 3.0 + ratio * ratio / 5))
    }
}
