import Contract
import JSON

/// A parsed command line.
struct Invocation: Equatable {
    var verb: Verb
    /// `nil` for the default socket.
    var path: String?
    var isJSON = false

    /// The command with its operands.
    enum Verb: Equatable {
        case help(Help.Topic?)
        case version
        case rooms
        case nodes
        case room(RoomID)
        case explain(RoomID, SubscriptionID)
        case talkers(RoomID)
        case stats
        case info
        /// Empty for all rooms.
        case watch([RoomID])
        case close(RoomID)
        case act(Action)
        /// Audio goes to `port`, video to `port` + 2.
        case tap(RoomID, StreamID, host: String, port: UInt16)
        case untap(RoomID, TapName)
        /// `nil` for all rooms.
        case taps(RoomID?)
        /// `nil` for the program that was started.
        case upgrade(String?)
        case call(method: String, params: JSON)
        case compose(ComposeOptions)
        case top(TopOptions)
        case doctor
    }
}

/// An invalid command line.
struct UsageError: Error, Equatable {
    var message: String
    var topic: Help.Topic?

    var hint: String {
        "Try: sfuctl \(topic.map { $0.rawValue + " " } ?? "")--help"
    }
}

extension Invocation {
    /// Parses the arguments after the program's name.
    ///
    /// - Throws: `UsageError` that names the problem.
    init(_ arguments: [String]) throws(UsageError) {
        var rest: [String] = []
        var compose = ComposeOptions()
        var top = TopOptions()
        var wantsHelp = false
        var wantsVersion = false
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--version": wantsVersion = true
            case "--json": isJSON = true
            case "--ipc":
                guard index < arguments.count else {
                    throw UsageError(message: "--ipc needs a path")
                }
                path = arguments[index]
                index += 1
            case _ where argument.hasPrefix("--ipc="): path = String(argument.dropFirst(6))
            case _ where Self.isComposing(rest) && argument == "--dry-run":
                compose.isDryRun = true
            case _ where Self.isComposing(rest) && ComposeOptions.takesValue(argument):
                let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
                if parts.count == 2 && argument.hasPrefix("--") {
                    try compose.take(parts[0], parts[1])
                    continue
                }
                guard index < arguments.count else {
                    throw UsageError(message: "\(argument) needs a value", topic: .compose)
                }
                try compose.take(argument, arguments[index])
                index += 1
            case "--once" where rest.first == Help.Topic.top.rawValue: top.isOnce = true
            case _ where rest.first == Help.Topic.top.rawValue && argument.hasPrefix("--sort"):
                var name = String(argument.dropFirst("--sort=".count))
                if argument == "--sort", index < arguments.count {
                    name = arguments[index]
                    index += 1
                }
                top.sort = try Self.sort(name)
            case "--":
                rest += arguments[index...]
                index = arguments.count
            case _ where argument.hasPrefix("-") && argument != "-":
                throw UsageError(message: "no option \(argument)")
            default: rest.append(argument)
            }
        }
        verb = wantsVersion ? .version : try Verb(rest, compose, top, wantsHelp: wantsHelp)
    }

    private static func sort(_ name: String) throws(UsageError) -> TopSort {
        guard let sort = TopSort(rawValue: name) else {
            let names = TopSort.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError(message: "--sort takes one of \(names)", topic: .top)
        }
        return sort
    }

    private static func isComposing(_ words: [String]) -> Bool {
        words.first == Help.Topic.compose.rawValue
    }
}

extension Invocation.Verb {
    fileprivate init(
        _ words: [String],
        _ compose: ComposeOptions,
        _ top: TopOptions,
        wantsHelp: Bool
    ) throws(UsageError) {
        guard let name = words.first else {
            guard wantsHelp else { throw UsageError(message: "what shall be done?") }
            self = .help(nil)
            return
        }
        let operands = Array(words.dropFirst())
        if name == "help" {
            self = .help(nil)
            if let about = operands.first { self = .help(try Self.topic(about)) }
            return
        }
        let topic = try Self.topic(name)
        if wantsHelp {
            self = .help(topic)
            return
        }
        guard topic.operands.contains(operands.count) else {
            throw UsageError(message: "usage: sfuctl \(topic.synopsis)", topic: topic)
        }
        self = try Self.verb(topic, operands, compose, top)
    }

    private static func verb(
        _ topic: Help.Topic,
        _ operands: [String],
        _ compose: ComposeOptions,
        _ top: TopOptions
    ) throws(UsageError) -> Self {
        switch topic {
        case .top:
            var top = top
            for operand in operands { top.rooms.append(try room(operand, topic)) }
            return .top(top)
        case .doctor: return .doctor
        case .compose:
            var compose = compose
            compose.directory = operands[0]
            return .compose(try compose.checked())
        case .rooms: return .rooms
        case .nodes: return .nodes
        case .room: return .room(try room(operands[0], topic))
        case .explain:
            guard let subscription = SubscriptionID(rawValue: operands[1]) else {
                throw UsageError(
                    message: "\"\(operands[1])\" is no subscription's id",
                    topic: topic
                )
            }
            return .explain(try room(operands[0], topic), subscription)
        case .talkers: return .talkers(try room(operands[0], topic))
        case .stats: return .stats
        case .info: return .info
        case .watch:
            var rooms: [RoomID] = []
            for operand in operands { rooms.append(try room(operand, topic)) }
            return .watch(rooms)
        case .close: return .close(try room(operands[0], topic))
        case .tap: return try tap(try room(operands[0], topic), operands[1], operands[2])
        case .untap:
            guard let tap = TapName(rawValue: operands[1]) else {
                throw UsageError(message: "\"\(operands[1])\" is no tap's id", topic: topic)
            }
            return .untap(try room(operands[0], topic), tap)
        case .taps:
            return .taps(
                try operands.first.map { name throws(UsageError) in try room(name, topic) }
            )
        case .upgrade: return .upgrade(operands.first)
        case .call:
            let params = try operands.count > 1 ? json(operands[1], topic) : [:]
            return .call(method: operands[0], params: params)
        case .lock, .unlock, .mute, .unmute, .drop, .approve, .deny, .floor, .role, .pin, .unpin,
            .state:
            let room = try room(operands[0], topic)
            return .act(try Action(topic, room, Array(operands.dropFirst())))
        }
    }

    private static func tap(
        _ room: RoomID,
        _ stream: String,
        _ endpoint: String
    ) throws(UsageError) -> Self {
        guard let stream = StreamID(rawValue: stream) else {
            throw UsageError(message: "\"\(stream)\" is no stream's id", topic: .tap)
        }
        // Video uses the port plus 2, and its RTCP the one after that.
        guard let colon = endpoint.lastIndex(of: ":"), colon > endpoint.startIndex,
            let port = UInt16(endpoint[endpoint.index(after: colon)...]),
            (1...UInt16.max - 3).contains(port)
        else {
            throw UsageError(
                message: "\"\(endpoint)\" is no ADDR:PORT with a port from 1 to 65532",
                topic: .tap
            )
        }
        return .tap(room, stream, host: String(endpoint[..<colon]), port: port)
    }

    private static func topic(_ name: String) throws(UsageError) -> Help.Topic {
        guard let topic = Help.Topic(rawValue: name) else {
            throw UsageError(message: "no command \"\(name)\"")
        }
        return topic
    }

    private static func room(
        _ name: String,
        _ topic: Help.Topic
    ) throws(UsageError) -> RoomID {
        guard let room = RoomID(rawValue: name) else {
            throw UsageError(
                message: "\"\(name)\" is no room: 1 to 128 of A-Z a-z 0-9 . _ : -",
                topic: topic
            )
        }
        return room
    }

    private static func json(_ text: String, _ topic: Help.Topic) throws(UsageError) -> JSON {
        do throws(JSONSyntaxError) {
            return try JSON(parsing: Array(text.utf8))
        } catch {
            throw UsageError(
                message: "params are not JSON: \(error.cause) (byte \(error.offset))",
                topic: topic
            )
        }
    }
}
