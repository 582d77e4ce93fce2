/// The source of a stream's media: a device or a screen.
package enum MediaSource: String, Hashable, Sendable, CaseIterable {
    case camera, microphone, screen

    /// Returns the default source of an m-line whose source was not given.
    package static func defaultSource(for kind: MediaKind) -> Self {
        switch kind {
        case .audio: .microphone
        case .video: .camera
        }
    }

    package func fits(_ kind: MediaKind) -> Bool {
        switch self {
        case .camera: kind == .video
        case .microphone: kind == .audio
        case .screen: true
        }
    }
}
