import WorkerInterface

extension Room {
    /// Attributes that a publisher gives to a stream.
    ///
    /// The transport keeps them, so that a stream that ends and is made again has them too.
    struct StreamAttributes: Hashable, Sendable, Codable {
        var name: String?
        /// Callers' data, the JSON text of an object; `nil` for an empty one.
        var custom: String?
        /// Whether video may be switched off to keep audio; `nil` if nothing was said.
        var audioFallback: Bool?

        mutating func apply(_ change: StreamAttributesChange) {
            name = change.name.applied(to: name)
            custom = change.custom.applied(to: custom)
            audioFallback = change.audioFallback.applied(to: audioFallback)
        }
    }

    /// Change of a stream's attributes, as an offer names it with one of the stream's m-lines.
    package struct StreamAttributesChange: Sendable {
        package var name = Setting<String>.keep
        /// JSON text of an object.
        package var custom = Setting<String>.keep
        package var audioFallback = Setting<Bool>.keep

        package init() {}
    }
}

extension Room.Transport {
    /// Takes the attributes that an offer names; of several m-lines of a stream the last one
    /// counts.
    ///
    /// M-lines on which the participant does not send are ignored, but those that are refused are
    /// not: their stream may come later.
    mutating func takeAttributes(
        of call: Room.Offer,
        _ answer: Answer,
        _ sources: [String: MediaSource]
    ) {
        audioFallback = call.audioFallback.applied(to: audioFallback)
        for line in answer.media where line.publication != nil || line.refused != nil {
            guard let kind = line.kind, let change = call.streams[line.mid] else { continue }
            switch sources[line.mid] ?? .defaultSource(for: kind) {
            case .screen: screen.apply(change)
            case .camera, .microphone: camera.apply(change)
            }
        }
    }

    /// Whether a stream's publisher allows switching off its video to keep audio.
    ///
    /// A shared screen is what people look at, so it falls back only if that was asked for.
    func mayFallBack(isScreen: Bool) -> Bool {
        let own = isScreen ? screen.audioFallback : camera.audioFallback
        return own ?? audioFallback ?? !isScreen
    }
}

extension Room.Stream {
    /// Takes the attributes that its transport has for it.
    ///
    /// - Returns: whether that was a change.
    mutating func takeAttributes(of transport: Room.Transport) -> Bool {
        let attributes = isScreen ? transport.screen : transport.camera
        let fallback = transport.mayFallBack(isScreen: isScreen)
        guard name != attributes.name || custom != attributes.custom || audioFallback != fallback
        else { return false }
        name = attributes.name
        custom = attributes.custom
        audioFallback = fallback
        return true
    }
}
