import Contract
import SFUClient

extension Sfuctl {
    /// Starts, ends and lists RTP forwards.
    static func tap(_ invocation: Invocation, _ client: SFUClient) async throws(ClientError) {
        switch invocation.verb {
        case .tap(let room, let stream, let host, let port):
            let streams = try await client.streams(room: room)
            let info = streams.first { $0.stream == stream }
            var params = TapStart.Params(room: room, stream: stream)
            // For an unknown stream both kinds are requested, so that sfud reports the error.
            if info?.audio != nil || info == nil {
                params.audio = TapDestination(address: "\(host):\(port)")
            }
            if info?.video != nil || info == nil {
                params.video = TapDestination(address: "\(host):\(port + 2)")
            }
            let result = try await client.call(TapStart.self, params)
            Output.text(invocation.isJSON ? pretty(result) : String(result.sdp.dropLast()))
        case .untap(let room, let tap):
            _ = try await client.call(TapStop.self, .init(room: room, tap: tap))
        case .taps(let room):
            let result = try await client.call(TapList.self, .init(room: room))
            Output.text(invocation.isJSON ? pretty(result) : Report.taps(result.taps))
        case .help, .version, .rooms, .nodes, .room, .explain, .talkers, .stats, .info, .watch,
            .close, .act, .call, .upgrade, .compose, .top, .doctor:
            break
        }
    }
}

extension Report {
    static func taps(_ taps: [TapInfo]) -> String {
        guard !taps.isEmpty else { return "no taps" }
        var table = Table([
            ("TAP", .left), ("ROOM", .left), ("STREAM", .left), ("AUDIO", .left),
            ("VIDEO", .left), ("PACKETS", .right), ("DROPPED", .right), ("REFUSED", .right),
        ])
        for tap in taps {
            table.add([
                tap.tap.rawValue, tap.room.rawValue, tap.stream.rawValue,
                tap.audio?.address ?? "-", tap.video?.address ?? "-", "\(tap.packets)",
                "\(tap.dropped)", "\(tap.refused)",
            ])
        }
        return table.text
    }
}
