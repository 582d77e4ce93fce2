/// `participant.awaited`: a participant waits to be let in.
public struct ParticipantAwaited: EventData {
    public static let event = "participant.awaited"
    public var participant: AwaitedParticipant
    public init(participant: AwaitedParticipant) { self.participant = participant }
}
