import Contract
import JSON
import Kernel
import SFUClient

/// The operator's command-line tool.
@main
struct Sfuctl {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let status: Outcome
        do throws(UsageError) {
            status = await run(try Invocation(arguments))
        } catch {
            Output.error("sfuctl: \(error.message)\n\(error.hint)")
            status = .usage
        }
        status.exit()
    }

    static func run(_ invocation: Invocation) async -> Outcome {
        if case .compose(let options) = invocation.verb {
            return Composer.run(options, isJSON: invocation.isJSON)
        }
        let path = invocation.path ?? IPCPath.standard
        let client = SFUClient(path: path)
        if case .doctor = invocation.verb {
            let facts = await DoctorProbe(client, path: path).facts()
            let findings = DoctorChecks(facts).findings
            Output.text(invocation.isJSON ? pretty(findings) : Report.findings(findings))
            return findings.contains { $0.state == .fault } ? .refused : .done
        }
        do throws(ClientError) {
            try await run(invocation, client)
            return .done
        } catch {
            Output.error("sfuctl: \(error)")
            return Outcome(error)
        }
    }

    private static func run(
        _ invocation: Invocation,
        _ client: SFUClient
    ) async throws(ClientError) {
        switch invocation.verb {
        case .help(let verb): Output.text(Help.text(for: verb))
        case .version: Output.text("sfuctl \(ProgramVersion.text)")
        case .rooms:
            let rooms = try await client.rooms()
            Output.text(
                invocation.isJSON ? pretty(RoomList.Result(rooms: rooms)) : Report.rooms(rooms)
            )
        case .nodes:
            let nodes = try await client.nodes()
            Output.text(invocation.isJSON ? pretty(nodes) : Report.nodes(nodes))
        case .room(let room):
            let room = try await whole(room, client)
            Output.text(invocation.isJSON ? pretty(room) : Report.room(room))
        case .explain(let room, let subscription):
            let found = try await client.explain(room: room, subscription: subscription)
            Output.text(invocation.isJSON ? pretty(found) : Report.explanation(found))
        case .talkers(let room):
            let talkers = try await client.room(room).talkers
            Output.text(invocation.isJSON ? pretty(talkers) : Report.talkers(talkers))
        case .info:
            let info = try await client.serverInfo()
            Output.text(invocation.isJSON ? pretty(info) : Report.info(info))
        case .stats:
            let stats = try await client.serverStats()
            Output.text(invocation.isJSON ? pretty(stats) : Report.stats(stats))
        case .watch(let rooms):
            for try await event in client.events(rooms: rooms.isEmpty ? nil : rooms) {
                Output.text(invocation.isJSON ? line(event) : Report.event(event))
            }
        case .close(let room): try await client.closeRoom(room)
        case .act(let action):
            let result = try await client.call(action.method, action.params)
            let report = invocation.isJSON ? PrettyJSON.text(result) : Report.done(result)
            if !report.isEmpty { Output.text(report) }
        case .tap, .untap, .taps: try await tap(invocation, client)
        case .upgrade(let binary):
            try await upgrade(to: binary, isJSON: invocation.isJSON, client)
        case .call(let method, let params):
            Output.text(PrettyJSON.text(try await client.call(method, params)))
        case .top(let options):
            let session = TopSession(client, options)
            if let terminal = Terminal.current, !options.isOnce, !invocation.isJSON {
                await session.show(on: terminal)
            } else {
                try await session.printOnce(isJSON: invocation.isJSON)
            }
        // Handled before, as they need no sfud.
        case .compose, .doctor: break
        }
    }

    /// Returns a room with its lists to their ends.
    private static func whole(
        _ id: RoomID,
        _ client: SFUClient
    ) async throws(ClientError) -> RoomInfo {
        var room = try await client.room(id)
        guard let next = room.next else { return room }
        room.next = nil
        if next.participants != nil {
            room.participants = try await client.participants(room: id, state: .joined)
        }
        if next.awaited != nil {
            room.awaited = try await client.participants(room: id, state: .awaited)
        }
        if next.streams != nil { room.streams = try await client.streams(room: id) }
        return room
    }

    static func pretty(_ value: some Encodable) -> String {
        PrettyJSON.text(JSON(encoding: value))
    }

    private static func line(_ value: some Encodable) -> String {
        String(decoding: JSON.encoded(value), as: UTF8.self)
    }
}
