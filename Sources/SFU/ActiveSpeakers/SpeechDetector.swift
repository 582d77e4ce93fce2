import RTP

/// Speech detector that finds the start and end of speech from packets' audio levels.
///
/// It uses three windows, after Volfin and Cohen, "Dominant speaker identification for multipoint
/// videoconferencing" (2012): whether this packet is loud (immediate), whether most of the last 300
/// ms was (medium), and how much was spoken in the last seconds (long). The medium window starts
/// speech, and the long one sets how long a pause may be. `docs/talkers.md` has the reasons.
struct SpeechDetector: BitwiseCopyable {
    enum Change: Equatable, BitwiseCopyable {
        /// Start of speech, back-dated to its first syllable and reported once it is certain.
        case started(at: Instant)
        case stopped
    }

    private var floor = NoiseFloor()
    private var voice = VoiceLevel()
    private var recent = RecentLoudness()
    private var fluctuation = LevelFluctuation()
    private var peak = RecentPeak()
    /// Speech in the long window, in milliseconds.
    private var spoken = 0
    private var talking = false
    /// Arrival of the last packet that belonged to speech.
    private var lastSpeech = Instant(nanoseconds: 0)
    private var lastArrival: Instant?
    /// End of the received audio, on the local clock.
    private var heardUntil = Instant(nanoseconds: 0)
    /// Milliseconds not yet counted as a whole step.
    private var fraction = 0
    private var tellsVoice = false

    init() {}

    var isTalking: Bool { talking }

    /// Whether it is talking or was recently loud.
    ///
    /// A candidate may soon be promoted, so its audio is stored.
    var isCandidate: Bool {
        talking
            || recent.milliseconds(within: Self.latelyMilliseconds) >= Self.candidateMilliseconds
    }

    /// Time when `expire(at:)` has something to do if no packet arrives before.
    var deadline: Instant? {
        guard let lastArrival else { return nil }
        if talking { return lastSpeech.advanced(milliseconds: Int64(patience)) }
        return recent.isSilent ? nil : lastArrival.advanced(milliseconds: Self.forgetMilliseconds)
    }

    /// Processes one packet's level, for `milliseconds` of audio.
    mutating func receive(
        _ level: AudioLevel,
        milliseconds: Int,
        at now: Instant
    ) -> Change? {
        let length = min(max(milliseconds, 1), 120)
        pass(until: now, length)
        if level.voice == true { tellsVoice = true }
        // Some senders always set the voice bit and some never do. A clear bit counts only after a
        // set one.
        peak.receive(level.level, milliseconds: length)
        let mayBeVoice = !tellsVoice || level.voice != false
        let isLoud = mayBeVoice && level.level <= threshold
        let isAudible = mayBeVoice && level.level <= threshold &+ Self.onsetMargin
        floor.receive(level.level, milliseconds: length)
        fluctuation.receive(level.level, isLoud: isLoud, wasSilent: recent.isSilent)
        let isFull = isLoud && level.level <= peak.fullThreshold
        note(isLoud: isLoud, isAudible: isAudible, isFull: isFull, length)
        return decide(level.level, isLoud: isLoud, length, at: now)
    }

    /// Ends speech when packets have stopped, because of DTX or a lost path.
    mutating func expire(at now: Instant) -> Change? {
        guard let deadline, deadline <= now else { return nil }
        if talking { return stop() }
        recent = RecentLoudness()
        return nil
    }

    /// Ends speech because the gate closed, and resets all state except the noise floor and the use
    /// of the voice bit.
    mutating func close() -> Change? {
        let wasTalking = talking
        let (floor, tellsVoice) = (floor, tellsVoice)
        self = Self()
        self.floor = floor
        self.tellsVoice = tellsVoice
        return wasTalking ? .stopped : nil
    }

    /// Quietest level of speech, in -dBov.
    private var threshold: UInt8 {
        let aboveFloor = floor.level &- min(floor.level, Self.floorMargin)
        return min(aboveFloor, voice.threshold, peak.threshold, Self.quietestSpeech)
    }

    /// Longest pause within speech, in milliseconds, which grows with the amount spoken.
    private var patience: Int { Self.shortestPatience + spoken * 7 / 20 }

    private mutating func decide(
        _ level: UInt8,
        isLoud: Bool,
        _ length: Int,
        at now: Instant
    ) -> Change? {
        let certain = Self.certainMilliseconds + 2 * length
        let loud = recent.milliseconds(within: certain + Self.gapMilliseconds)
        guard !talking else {
            voice.receive(level, milliseconds: length)
            if isLoud {
                if loud >= Self.heldMilliseconds, recent.hasSyllable { lastSpeech = now }
            }
            return now >= lastSpeech.advanced(milliseconds: Int64(patience)) ? stop() : nil
        }
        voice.receiveQuiet(level, milliseconds: length)
        let isSpeech =
            isLoud && loud >= certain && recent.hasSyllable && fluctuation.isOfSpeech
        guard isSpeech else { return nil }
        talking = true
        lastSpeech = now
        spoken = loud
        let back = Int64(recent.millisecondsSinceOnset)
        return .started(at: now.advanced(milliseconds: -back))
    }

    private mutating func stop() -> Change {
        talking = false
        spoken = 0
        recent = RecentLoudness()
        return .stopped
    }

    /// Accounts for silence that was not sent in packets.
    private mutating func pass(until now: Instant, _ length: Int) {
        let end = heardUntil.advanced(milliseconds: Int64(length))
        guard lastArrival != nil else {
            (lastArrival, heardUntil) = (now, now)
            return
        }
        lastArrival = now
        let missing = now.milliseconds(since: end)
        guard missing > Self.jitterMilliseconds else {
            heardUntil = min(end, now)
            return
        }
        recent.pass(milliseconds: Int(min(missing, 1_000)))
        spoken = max(0, spoken - Int(min(missing, 60_000)) / 4)
        heardUntil = now
    }

    private mutating func note(isLoud: Bool, isAudible: Bool, isFull: Bool, _ length: Int) {
        fraction += length
        let steps = fraction / RecentLoudness.stepMilliseconds
        fraction -= steps * RecentLoudness.stepMilliseconds
        recent.append(isLoud: isLoud, isAudible: isAudible, isFull: isFull, steps: steps)
        guard talking else { return }
        spoken = isLoud ? min(spoken + length, Self.longMilliseconds) : max(0, spoken - length / 4)
    }

    /// Loud milliseconds in the medium window that are certain to be speech.
    ///
    /// Two packet lengths are added, in which a cough may begin and end.
    private static let certainMilliseconds = 150
    /// Extra length of the medium window, for the gaps between syllables.
    private static let gapMilliseconds = 100
    /// Loud milliseconds in the window that continue speech.
    private static let heldMilliseconds = 100
    private static let candidateMilliseconds = 40
    private static let latelyMilliseconds = 300
    private static let longMilliseconds = 2_000
    private static let shortestPatience = 500
    /// Time without packets after which the loudness history is cleared.
    private static let forgetMilliseconds: Int64 = 300
    /// Longest delay taken for jitter; longer gaps are audio that was not sent.
    private static let jitterMilliseconds: Int64 = 200
    /// Margin above the noise floor, in dB.
    private static let floorMargin: UInt8 = 9
    private static let onsetMargin: UInt8 = 8
    /// Quietest level of an active speaker, in -dBov.
    private static let quietestSpeech: UInt8 = 50
}

/// Fluctuation of loud levels: a voice rises and falls from packet to packet, a fan does not.
struct LevelFluctuation: BitwiseCopyable {
    /// Mean difference between consecutive levels, in dB.
    private var mean: Float = 0
    private var count = 0
    private var last: UInt8?

    var isOfSpeech: Bool { count >= Self.leastCount && Self.ofSpeech ~= mean }

    /// Processes one packet's level, and starts over after recent silence.
    mutating func receive(_ level: UInt8, isLoud: Bool, wasSilent: Bool) {
        if wasSilent { (mean, count, last) = (0, 0, nil) }
        guard isLoud else {
            last = nil
            return
        }
        if let last {
            let step = min(abs(Float(level) - Float(last)), Self.mostOfOne)
            count = min(count + 1, Self.mostCount)
            mean += (step - mean) / Float(count)
        }
        last = level
    }

    /// Mean difference of speech, in dB; noise in packets of 20 ms has at most half of it.
    private static let ofSpeech = (2 as Float)...6
    /// Cap on a single difference, so that one jump does not count as fluctuation.
    private static let mostOfOne: Float = 12
    private static let leastCount = 3
    private static let mostCount = 12
}

/// Estimate of a microphone's noise floor by minimum statistics: the quietest level of the last
/// seconds.
///
/// Speech has gaps, so its minimum over some seconds is the background noise. A fan has no gaps.
struct NoiseFloor: BitwiseCopyable {
    /// Level of the noise, in -dBov.
    private(set) var level: UInt8 = Self.unknown
    /// Quietest level of each span, including the current one.
    private var quietest = [12 of UInt8](repeating: Self.unknown)
    private var present = 0
    private var milliseconds = 0

    mutating func receive(_ level: UInt8, milliseconds length: Int) {
        quietest[present] = max(quietest[present], level)
        milliseconds &+= length
        guard milliseconds >= Self.spanMilliseconds else { return }
        milliseconds = 0
        measure()
        present = (present + 1) % quietest.count
        quietest[present] = level
    }

    /// Updates the floor: it falls at once, and rises after noise has lasted through all spans.
    private mutating func measure() {
        var least: UInt8 = 0
        for index in quietest.indices { least = max(least, quietest[index]) }
        level = min(max(least, Self.loudest), Self.quietest)
    }

    /// Length of each of the twelve spans: 4.8 s in all, longer than people speak without a gap.
    private static let spanMilliseconds = 400
    /// Floor assumed until the first seconds are over.
    private static let unknown: UInt8 = 60
    /// Lowest floor; gated microphones send silence, which says nothing about the room.
    private static let quietest: UInt8 = 75
    /// Highest floor, which leaves a range for speech above it.
    private static let loudest: UInt8 = 30
}

/// Decaying peak level.
///
/// Sound much quieter than the peak is taken for its echo, not for a syllable.
struct RecentPeak: BitwiseCopyable {
    /// Peak level in -dBov.
    private var level = Self.none

    /// Quietest level of the same speech, in -dBov.
    var threshold: UInt8 { UInt8(min(level + Self.range, Self.none)) }

    /// Quietest level of a syllable's middle, in -dBov.
    var fullThreshold: UInt8 { UInt8(min(level + Self.syllable, Self.none)) }

    mutating func receive(_ heard: UInt8, milliseconds: Int) {
        level = min(level + Self.fall * Float(milliseconds), Float(heard), Self.none)
    }

    private static let none: Float = 127
    private static let range: Float = 16
    private static let syllable: Float = 9
    /// Decay in dB per millisecond: a second after a cough, speech of any loudness is recognized
    /// again.
    private static let fall: Float = 0.02
}
