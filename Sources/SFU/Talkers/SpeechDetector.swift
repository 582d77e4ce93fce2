import RTP

/// Finds out from the loudness of packets when somebody begins to talk and ends.
///
/// It looks through three windows, after Volfin and Cohen, "Dominant speaker identification for
/// multipoint videoconferencing" (2012): is this packet loud (immediate), was most of the last
/// 300 ms (medium), and how much was spoken in the last seconds (long). The medium one begins
/// speech, and the long one says how long a pause may be. `docs/talkers.md` has the reasons.
struct SpeechDetector: BitwiseCopyable {
    enum Change: Equatable, BitwiseCopyable {
        /// Speech began, back-dated to its first syllable; said when it is certain.
        case started(at: Instant)
        case stopped
    }

    private var floor = NoiseFloor()
    private var voice = VoiceLevel()
    private var recent = RecentLoudness()
    private var variation = Variation()
    private var peak = RecentPeak()
    /// The long window, in milliseconds of speech.
    private var spoken = 0
    private var talking = false
    /// When the last packet came that belonged to speech.
    private var lastSpeech = Instant(nanoseconds: 0)
    private var lastArrival: Instant?
    /// How far the sound that came reaches, on our clock.
    private var heardUntil = Instant(nanoseconds: 0)
    /// Packets shorter than a step, until they make one.
    private var fraction = 0
    private var tellsVoice = false

    init() {}

    var isTalking: Bool { talking }

    /// Loud of late: may be promoted soon, so its audio is worth keeping and its video worth
    /// asking for.
    var isCandidate: Bool {
        talking
            || recent.milliseconds(within: Self.latelyMilliseconds) >= Self.candidateMilliseconds
    }

    /// When `expire(at:)` has something to do, if nothing comes until then.
    var deadline: Instant? {
        guard let lastArrival else { return nil }
        if talking { return lastSpeech.advanced(milliseconds: Int64(patience)) }
        return recent.isSilent ? nil : lastArrival.advanced(milliseconds: Self.forgetMilliseconds)
    }

    /// Takes the loudness of one packet, with so many milliseconds of sound.
    mutating func receive(
        _ level: AudioLevel,
        milliseconds: Int,
        at now: Instant
    ) -> Change? {
        let length = min(max(milliseconds, 1), 120)
        pass(until: now, length)
        if level.voice == true { tellsVoice = true }
        // Some senders set the bit always and some never; only who does both means it.
        peak.receive(level.level, milliseconds: length)
        let mayBeVoice = !tellsVoice || level.voice != false
        let isLoud = mayBeVoice && level.level <= threshold
        let isAudible = mayBeVoice && level.level <= threshold &+ Self.onsetMargin
        floor.receive(level.level, milliseconds: length)
        variation.receive(level.level, isLoud: isLoud, wasSilent: recent.isSilent)
        let isFull = isLoud && level.level <= peak.fullThreshold
        note(isLoud: isLoud, isAudible: isAudible, isFull: isFull, length)
        return decide(level.level, isLoud: isLoud, length, at: now)
    }

    /// Silence without packets: discontinuous transmission, or a lost path.
    mutating func expire(at now: Instant) -> Change? {
        guard let deadline, deadline <= now else { return nil }
        if talking { return stop() }
        recent = RecentLoudness()
        return nil
    }

    /// The gate closed: no more talking, and no memory of what was but the noise floor.
    mutating func close() -> Change? {
        let wasTalking = talking
        let (floor, tellsVoice) = (floor, tellsVoice)
        self = Self()
        self.floor = floor
        self.tellsVoice = tellsVoice
        return wasTalking ? .stopped : nil
    }

    /// What is as loud may be speech.
    private var threshold: UInt8 {
        let aboveFloor = floor.level &- min(floor.level, Self.floorMargin)
        return min(aboveFloor, voice.threshold, peak.threshold, Self.quietestSpeech)
    }

    /// How long a pause may be, in milliseconds: more where more was spoken.
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
            isLoud && loud >= certain && recent.hasSyllable && variation.isOfSpeech
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

    /// Lets the silence pass that came in no packet.
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

    /// Longer than a cough must be what is loud in the medium window, by the two packets in which a
    /// cough may begin and end.
    private static let certainMilliseconds = 150
    /// As much more has the window, for what lies between syllables.
    private static let gapMilliseconds = 100
    /// So much in the window goes on to be speech.
    private static let heldMilliseconds = 100
    private static let candidateMilliseconds = 40
    private static let latelyMilliseconds = 300
    private static let longMilliseconds = 2_000
    private static let shortestPatience = 500
    /// What came within these is no candidate any more.
    private static let forgetMilliseconds: Int64 = 300
    /// What is later than this was not sent.
    private static let jitterMilliseconds: Int64 = 200
    /// In dB.
    private static let floorMargin: UInt8 = 9
    private static let onsetMargin: UInt8 = 8
    /// In dB below the loudest: nobody is heard as a talker who is quieter.
    private static let quietestSpeech: UInt8 = 50
}
