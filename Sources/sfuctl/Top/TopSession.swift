import Contract
import Foundation
import JSON
import Kernel
import SFUClient

/// Run of `sfuctl top`: statistics and keys in, text out.
struct TopSession {
    /// Something that the run reacts to.
    enum Input: Sendable {
        case stats(RoomID, RoomStats)
        case server(ServerStats.Result)
        case limit(SubscriptionID, LayerLimitReason)
        case lost(ClientError)
        case key(UInt8)
        case tick
        case quit
    }

    private let client: SFUClient
    private let options: TopOptions
    private let stream: AsyncStream<Input>
    private let inputs: AsyncStream<Input>.Continuation
    /// Videos whose limits are asked for.
    private let asked = Locked<[SubscriptionInRoom]>([])

    private static let limitsPerSecond = 30
    private static let limitsAtOnce = 200
    private static let onceSeconds = 5.0
    private static let tickMilliseconds = 200

    init(_ client: SFUClient, _ options: TopOptions) {
        self.client = client
        self.options = options
        (stream, inputs) = AsyncStream.makeStream(of: Input.self)
    }

    /// Prints the figures once, when the rates of all rooms are known.
    ///
    /// - Throws: `ClientError` if sfud does not answer.
    func printOnce(isJSON: Bool) async throws(ClientError) {
        var model = TopModel()
        model.take(try await client.serverStats())
        // A room without participants with a transport is reported as well, unless it is empty.
        let rooms = try await client.rooms().filter { room in
            room.counts.participants > 0
                && (options.rooms.isEmpty || options.rooms.contains(room.room))
        }
        let tasks = [feed(), clock()]
        defer { for task in tasks { task.cancel() } }
        let start = Self.now
        for await input in stream {
            switch input {
            case .stats(let room, let part): model.take(part, of: room, at: Self.now)
            case .lost(let error): throw error
            case .server, .limit, .key, .tick, .quit: break
            }
            if model.isComplete(rooms.map(\.room)) { break }
            if Self.now - start > Self.onceSeconds { break }
        }
        model.take(try await client.serverStats())
        let view = TopView(sort: options.sort)
        for one in view.videos(model, rows: Self.limitsAtOnce).prefix(Self.limitsAtOnce) {
            // Somebody may have left meanwhile.
            let found = try? await client.explain(
                room: one.room,
                subscription: one.subscription
            )
            if let found { model.take(found.limit, of: one.subscription) }
        }
        Output.text(
            isJSON ? PrettyJSON.text(TopView.json(model, by: options.sort)) : view.text(model)
        )
    }

    /// Shows the figures until the user quits.
    func show(on terminal: Terminal) async {
        var model = TopModel()
        var view = TopView(sort: options.sort)
        let tasks = [feed(), clock(), questions()]
        let inputs = inputs
        terminal.begin {
            inputs.yield(.key($0))
        } ended: {
            inputs.yield(.quit)
        }
        defer {
            terminal.end()
            for task in tasks { task.cancel() }
        }
        for await input in stream {
            switch input {
            case .stats(let room, let part):
                view.trouble = nil
                model.take(part, of: room, at: Self.now)
                continue
            case .server(let stats):
                view.trouble = nil
                model.take(stats)
                continue
            case .limit(let subscription, let limit):
                model.take(limit, of: subscription)
                continue
            case .lost(let error):
                model.reset()
                view.trouble = "\(error); trying again"
            case .key(let key):
                let page = terminal.size.rows / 2
                guard view.take(key, page: page, rows: model.count) else { return }
            case .tick: model.forget(at: Self.now)
            case .quit: return
            }
            let size = terminal.size
            terminal.draw(view.screen(model, rows: size.rows, columns: size.columns))
            let videos = view.videos(model, rows: size.rows)
            asked.withLock { $0 = videos }
        }
    }

    /// Follows the statistics of the rooms, and connects again.
    private func feed() -> Task<Void, Never> {
        Task { [client, options, inputs] in
            let rooms = options.rooms.isEmpty ? nil : options.rooms
            while !Task.isCancelled {
                do throws(ClientError) {
                    for try await event in client.statistics(rooms: rooms, seconds: 1) {
                        guard let room = event.room,
                            let part = try? event.data(as: RoomStats.self)
                        else { continue }
                        inputs.yield(.stats(room, part))
                    }
                } catch {
                    inputs.yield(.lost(error))
                }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func clock() -> Task<Void, Never> {
        Task { [inputs] in
            while !Task.isCancelled {
                inputs.yield(.tick)
                try? await Task.sleep(for: .milliseconds(Self.tickMilliseconds))
            }
        }
    }

    /// Asks once a second for the server's figures, and for the limits of some shown videos.
    private func questions() -> Task<Void, Never> {
        Task { [client, asked, inputs] in
            var turn = 0
            while !Task.isCancelled {
                if let stats = try? await client.serverStats() { inputs.yield(.server(stats)) }
                let videos = asked.withLock { $0 }
                for step in 0..<min(videos.count, Self.limitsPerSecond) {
                    let one = videos[(turn + step) % videos.count]
                    let found = try? await client.explain(
                        room: one.room,
                        subscription: one.subscription
                    )
                    if let found { inputs.yield(.limit(one.subscription, found.limit)) }
                }
                turn += Self.limitsPerSecond
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// Seconds on a clock that does not jump.
    private static var now: Double { ProcessInfo.processInfo.systemUptime }
}

extension TopView {
    /// Reacts to a key; returns `false` if it is one to quit.
    mutating func take(_ key: UInt8, page: Int, rows: Int) -> Bool {
        switch key {
        case UInt8(ascii: "q"), UInt8(ascii: "Q"), Self.interrupt: return false
        case UInt8(ascii: "r"):
            showsRooms.toggle()
            offset = 0
        case UInt8(ascii: " "): offset = min(offset + max(page, 1), max(rows - 1, 0))
        case UInt8(ascii: "b"): offset = max(offset - max(page, 1), 0)
        default:
            guard let sort = TopSort.allCases.first(where: { $0.key.asciiValue == key }) else {
                return true
            }
            self.sort = sort
            offset = 0
        }
        return true
    }

    /// Ctrl-C, which raises no signal while the terminal passes every key on.
    static let interrupt: UInt8 = 3
}
