import Foundation
import RTP
import SFU
import Synchronization
import WorkerInterface

/// Lower bound for any SFU: a process that forwards datagrams without crypto or logic.
final class FloorAdapter: Adapter {
    let name: String
    private let segments: Bool
    private let state = Mutex(State())

    private struct State {
        var child: Child?
        var input: Pipe?
        var address: Address?
        var publications: [String: Publication] = [:]
        /// Destination address of each participant's datagrams.
        var places: [String: Address] = [:]
    }

    /// Creates the adapter; with `segments` it sends GSO runs, else one datagram a call.
    init(segments: Bool) {
        self.segments = segments
        name = segments ? "floor-G" : "floor-1"
    }

    func start(_ launch: Launch) async throws -> RunningSFU {
        let input = Pipe()
        let child = try Child(
            URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path,
            ["floor", segments ? "runs" : "each"],
            log: "\(launch.directory)/\(name).log",
            input: input
        )
        let address = try await child.awaitLine { line in
            line.hasPrefix("ready ") ? Address(endpoint: String(line.dropFirst(6))) : nil
        }
        state.withLock {
            $0.child = child
            $0.input = input
            $0.address = address
        }
        return RunningSFU(processes: [child.pid], version: name)
    }

    func stop() async {
        let child = state.withLock { state in
            defer { state = State() }
            return state.child
        }
        await child?.stop()
    }

    func makeRoom(_ room: String, participants: Int) async throws {}
    func closeRoom(_ room: String) async throws {}
    func leave(room: String, participant: String) async throws {}

    func join(_ request: JoinRequest) async throws -> JoinReply {
        let key = "\(request.room)/\(request.participant)"
        let address = state.withLock { state in
            state.publications[key] = request.publication
            state.places[key] = request.local.address
            return state.address
        }
        guard let address else { throw AdapterError("\(name) does not run") }
        var offer = SfudOffer(request.local)
        let format = request.publication.map { offer.publish($0) }
        let remote = RemoteTransport(security: .none, address: address)
        return JoinReply(remote: remote, sending: format)
    }

    func watch(_ request: WatchRequest) async throws -> WatchReply {
        var streams: [ReceivedStream] = []
        for streamRequest in request.streamRequests {
            let publication = state.withLock {
                $0.publications["\(request.room)/\(streamRequest.publisher)"]
            }
            guard let publication else {
                throw AdapterError("\(streamRequest.publisher) publishes nothing")
            }
            if streamRequest.audio, let ssrc = publication.audio {
                streams.append(Self.stream(streamRequest, .audio, ssrc))
            }
            if streamRequest.video, let last = publication.layers.indices.last {
                let layer = publication.layers[min(streamRequest.layer, last)]
                streams.append(Self.stream(streamRequest, .video, layer.ssrc))
            }
        }
        try state.withLock { state in
            guard let place = state.places["\(request.room)/\(request.participant)"],
                let number = place.ipv4
            else { return }
            let lines = streams.map { "add \($0.ssrc) \(number) \(place.port)\n" }
            try state.input?.fileHandleForWriting.write(contentsOf: Data(lines.joined().utf8))
        }
        return WatchReply(remote: nil, streams: streams)
    }

    private static func stream(
        _ streamRequest: WatchRequest.StreamRequest,
        _ medium: Medium,
        _ ssrc: UInt32
    ) -> ReceivedStream {
        ReceivedStream(
            publisher: streamRequest.publisher,
            medium: medium,
            ssrc: ssrc,
            rtxSSRC: nil,
            payloadType: medium == .audio
                ? OfferParameters.audioPayloadType : OfferParameters.videoPayloadType
        )
    }
}
