import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

// Mapping between the contract's types, which do not know rooms, and the room's types, which do not
// know JSON.

extension RoomState {
    init(_ state: Room.State) {
        switch state {
        case .created: self = .created
        case .ready: self = .ready
        case .ongoing: self = .ongoing
        case .ended: self = .ended
        }
    }
}

extension Room.State {
    init(_ state: RoomState) {
        switch state {
        case .created: self = .created
        case .ready: self = .ready
        case .ongoing: self = .ongoing
        case .ended: self = .ended
        }
    }
}

extension ParticipantMode {
    init(_ mode: Room.Mode) {
        switch mode {
        case .sendAndReceive: self = .sendAndReceive
        case .receiveOnly: self = .receiveOnly
        case .signallingOnly: self = .signallingOnly
        }
    }
}

extension Room.Mode {
    init(_ mode: ParticipantMode) {
        switch mode {
        case .sendAndReceive: self = .sendAndReceive
        case .receiveOnly: self = .receiveOnly
        case .signallingOnly: self = .signallingOnly
        }
    }
}

extension ConnectionState {
    init(_ connection: Room.Connection) {
        switch connection {
        case .none: self = .none
        case .connecting: self = .connecting
        case .connected: self = .connected
        case .reconnecting: self = .reconnecting
        case .disconnected: self = .disconnected
        }
    }
}

extension StreamSource {
    init(_ source: MediaSource) {
        switch source {
        case .camera: self = .camera
        case .microphone: self = .microphone
        case .screen: self = .screen
        }
    }
}

extension MediaSource {
    init(_ source: StreamSource) {
        switch source {
        case .camera: self = .camera
        case .microphone: self = .microphone
        case .screen: self = .screen
        }
    }
}

extension StreamKind {
    init(_ kind: MediaKind) {
        switch kind {
        case .audio: self = .audio
        case .video: self = .video
        }
    }
}

extension CodecName {
    init(_ codec: Codec) {
        switch codec {
        case .opus: self = .opus
        case .red: self = .red
        case .vp8: self = .vp8
        case .vp9: self = .vp9
        case .h264: self = .h264
        case .av1: self = .av1
        }
    }
}

extension MediaDirection {
    init(_ direction: Direction) {
        switch direction {
        case .sendrecv: self = .sendrecv
        case .sendonly: self = .sendonly
        case .recvonly: self = .recvonly
        case .inactive: self = .inactive
        }
    }
}

extension Room.Settings {
    init(_ settings: RoomSettings) {
        self.init()
        kind =
            switch settings.mode {
            case .group: .group
            case .lecture: .lecture
            case .singleHost: .singleHost
            case .singleHostAudioOnly: .singleHostAudioOnly
            }
        knock = settings.knock
        maxParticipants = settings.maxParticipants
        maxHosts = settings.maxHosts
        strictModeVocabulary = settings.strictModeVocabulary
        maxActiveTalkers = settings.maxActiveTalkers
        strictPins = settings.strictPins
        protectedRoles = Set(settings.protectedRoles.map(\.rawValue))
        roleRequestSeconds = settings.roleRequestSeconds
        emptySeconds = settings.emptySeconds
        disconnectedSeconds = settings.disconnectedSeconds
        autoRecord = settings.autoRecord
        roles = settings.roles.map(Room.Role.init)
    }
}

extension Room.Role {
    fileprivate init(_ role: Role) {
        var publish = Room.PublishRights()
        publish.audio = role.publish.audio.isGranted
        publish.video = role.publish.video.isGranted
        publish.screen = role.publish.screen.isGranted
        publish.audioBitrate = role.publish.audio.maxBitrate
        publish.cap = LayerCap(role.publish.camera)
        publish.screenCap = LayerCap(role.publish.screen)
        publish.simulcast = role.publish.simulcast ?? true
        self.init(
            name: role.name.rawValue,
            publish: publish,
            watches: role.subscribe.roles.map { Set($0.map(\.rawValue)) },
            permissions: Set(role.permissions.map(\.rawValue))
        )
        subscribeCap = LayerCap(
            width: role.subscribe.maxWidth,
            height: role.subscribe.maxHeight,
            bitrate: role.subscribe.maxBitrate
        )
        priority = role.priority?.rawValue ?? 0
    }
}

extension LayerCap {
    init(_ right: VideoRight) {
        self.init(
            width: right.maxWidth,
            height: right.maxHeight,
            frameRate: right.maxFrameRate,
            bitrate: right.maxBitrate
        )
    }
}

extension Room.Setting {
    init<Wire>(_ change: Change<Wire>, _ value: (Wire) -> Value) {
        switch change {
        case .keep: self = .keep
        case .clear: self = .clear
        case .set(let wire): self = .set(value(wire))
        }
    }
}
