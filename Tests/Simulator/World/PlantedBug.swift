/// A bug that the harness plants between the parts of the daemon, to show that the tests detect it.
///
/// None of them is in the daemon's code: each drops, repeats, delays or alters what passes from one
/// part to another, as a bug in that part would.
package enum PlantedBug: String, CaseIterable {
    case missingGate = "missing-gate"
    case missingGateElsewhere = "missing-gate-elsewhere"
    case skippedFence = "skipped-fence"
    case halfFence = "half-fence"
    case effectAfterFence = "effect-after-fence"
    case forgottenWithdrawal = "forgotten-withdrawal"
    case openedAtReconfigure = "opened-at-reconfigure"
    case forgottenUnbind = "forgotten-unbind"
    case forgottenBind = "forgotten-bind"
    case wrongRoom = "wrong-room"
    case wrongViewer = "wrong-viewer"
    case numberTwice = "number-twice"
    case numberMovedTwice = "number-moved-twice"
    case wrongCache = "wrong-cache"
    case replayedPacket = "replayed-packet"
    case lostKeyframeRequest = "lost-keyframe-request"
    case forgottenFlush = "forgotten-flush"
    case forgottenRing = "forgotten-ring"
    case uncountedDrop = "uncounted-drop"
    case placeKept = "place-kept"
    case doubleReply = "double-reply"
    case lostReply = "lost-reply"
    case strayReply = "stray-reply"
    case eventGap = "event-gap"
    case eventRepeated = "event-repeated"
    case staleAddress = "stale-address"

    /// The bug in a few words.
    package var text: String {
        switch self {
        case .missingGate: "closing a publisher's gate is forgotten"
        case .missingGateElsewhere: "… in the workers that have a mirror only"
        case .skippedFence: "the reply does not wait for the workers"
        case .halfFence: "it waits for the first of them only"
        case .effectAfterFence: "a gate closes 30 ms after the fence has passed"
        case .forgottenWithdrawal: "what waits for the socket stays there when the right is lost"
        case .openedAtReconfigure: "a new offer opens the gates that a mute had closed"
        case .forgottenUnbind: "a slot goes on with what its viewer has left"
        case .forgottenBind: "a slot is never told what to carry, one time in eight"
        case .wrongRoom: "one packet in a thousand goes to somebody in another room"
        case .wrongViewer: "one in a thousand goes to somebody else in the room"
        case .numberTwice: "one in 500 gets the number of the packet before"
        case .numberMovedTwice: "one in 500 has its number rewritten twice"
        case .wrongCache: "one NACK in 20 is answered from another stream's history"
        case .replayedPacket: "one datagram that came twice in 8 passes the replay window"
        case .lostKeyframeRequest: "requests for keyframes never reach the publisher"
        case .forgottenFlush: "one round in 20 does not send its batch"
        case .forgottenRing: "what is for another worker is never made visible to it"
        case .uncountedDrop: "one datagram in 2,000 vanishes without being counted"
        case .placeKept: "one transport in eight is never given back"
        case .doubleReply: "one reply in 50 is sent twice"
        case .lostReply: "one in 50 is never sent"
        case .strayReply: "one in 50 goes to another connection"
        case .eventGap: "one event in 100 is lost"
        case .eventRepeated: "one in 100 is told twice"
        case .staleAddress: "media stays with the address that a client has moved away from"
        }
    }
}
