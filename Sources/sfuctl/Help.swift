import SFUClient

/// Texts that `--help` prints.
enum Help {
    /// A command with its own help page.
    enum Topic: String, CaseIterable {
        case rooms, room, nodes, talkers, explain, top, stats, info, doctor, watch
        case lock, unlock, mute, unmute, drop, approve, deny, floor, role, pin, unpin, state
        case close, tap, untap, taps, upgrade, call, compose
    }

    static func text(for topic: Topic?) -> String {
        guard let topic else { return overview }
        return """
            sfuctl \(topic.synopsis)

            \(topic.explanation)

            \(topic == .compose ? composeOptions : topic == .top ? topOptions : options)
            """
    }

    private static var overview: String {
        let commands = Topic.allCases.map { "  \($0.synopsis)" }
        let width = commands.map(\.count).max() ?? 0
        let lines = zip(Topic.allCases, commands).map { topic, command in
            command + String(repeating: " ", count: width - command.count + 2) + topic.summary
        }
        return """
            sfuctl [--ipc PATH] COMMAND

            Shows what a running sfud does, and tells it what to do.

            Commands:
            \(lines.joined(separator: "\n"))

            \(options)

            Exit status: 0 done, 1 refused by sfud or impossible, 2 wrong command line,
            69 no sfud there, 74 output not written, 130 interrupted while composing.
            """
    }

    private static let options = """
        Options:
          --ipc PATH  sfud's socket (default: $SFUD_IPC, else $XDG_RUNTIME_DIR/sfud.sock,
                      else /tmp/sfud-UID.sock; here \(IPCPath.standard))
          --json      print JSON as sfud gave it
          --version   print the version
          --help      print this
        """

    private static let topOptions = """
        Options:
          --sort KEY  name, in, out, loss, rtt, jitter or freezes: the worst or largest first
                      (default: loss)
          --once      print the figures once, as where there is no terminal
          --json      the same as JSON
          --ipc PATH  sfud's socket
          --help      print this
        """

    private static let composeOptions = """
        Options:
          -o, --output FILE     the MP4 file to make (H.264, AAC)
          --layout grid         everybody in tiles of one size (default)
          --layout stage        screen and pinned, or who speaks, large, others beneath
          --layout side-by-side the two who spoke last; or the screen and people beside it
          --size WIDTHxHEIGHT   of the picture, both even (default: 1280x720)
          --font FILE           the font of the names (default: DejaVu Sans)
          --dry-run             print what would be seen when, and make nothing
          --json                with --dry-run: as JSON
          --help                print this
        """
}

extension Help.Topic {
    var synopsis: String {
        switch self {
        case .rooms, .nodes, .stats, .info, .doctor: rawValue
        case .top: "top [ROOM...]"
        case .room, .talkers, .close: "\(rawValue) ROOM"
        case .explain: "explain ROOM SUBSCRIPTION"
        case .watch: "watch [ROOM...]"
        case .lock, .unlock: "\(rawValue) ROOM"
        case .mute, .unmute: "\(rawValue) ROOM [PARTICIPANT [audio|video]]"
        case .drop, .pin, .unpin: "\(rawValue) ROOM PARTICIPANT..."
        case .approve, .deny: "\(rawValue) ROOM PARTICIPANT"
        case .floor: "floor ROOM grant|deny|release PARTICIPANT"
        case .role: "role ROOM PARTICIPANT ROLE"
        case .state: "state ROOM ready|ongoing|ended"
        case .tap: "tap ROOM STREAM ADDR:PORT"
        case .untap: "untap ROOM TAP"
        case .taps: "taps [ROOM]"
        case .upgrade: "upgrade [BINARY]"
        case .call: "call METHOD [PARAMS]"
        case .compose: "compose DIR -o FILE"
        }
    }

    /// Allowed numbers of operands.
    var operands: ClosedRange<Int> {
        switch self {
        case .rooms, .nodes, .stats, .info, .doctor: 0...0
        case .room, .talkers, .close, .compose: 1...1
        case .explain, .untap: 2...2
        case .tap: 3...3
        case .taps, .upgrade: 0...1
        case .watch, .top: 0...100
        case .lock, .unlock: 1...1
        case .mute, .unmute: 1...3
        case .drop, .pin, .unpin: 2...100
        case .approve, .deny, .state: 2...2
        case .floor, .role: 3...3
        case .call: 1...2
        }
    }

    var summary: String {
        switch self {
        case .rooms: "list the rooms"
        case .room: "show one room: participants and streams"
        case .nodes: "list the nodes of the cluster"
        case .explain: "say why a viewer sees what it sees"
        case .talkers: "show who talks and who is pinned"
        case .top: "show bit rates, loss, round trips and freezes as they change"
        case .doctor: "check sfud and its machine, and say what to do"
        case .stats: "show packets in, out and dropped, and the workers' load"
        case .info: "show version, addresses and limits"
        case .watch: "print events as they come, one a line"
        case .close: "end a room"
        case .lock: "let nobody new into a room"
        case .unlock: "let people in again"
        case .mute: "silence all but moderators, or take a participant's media"
        case .unmute: "give it back"
        case .drop: "disconnect participants"
        case .approve: "let in who has knocked"
        case .deny: "send away who has knocked"
        case .floor: "give, refuse or take the floor of a lecture"
        case .role: "change a participant's role at once"
        case .pin: "pin participants"
        case .unpin: "take pins away"
        case .state: "take a live event a step on"
        case .tap: "send a stream as plain RTP, for other tools"
        case .untap: "end that"
        case .taps: "list the streams that go out as plain RTP"
        case .upgrade: "replace sfud by another version"
        case .call: "call any method"
        case .compose: "make one file of a recorded session; needs no sfud"
        }
    }

    var explanation: String {
        switch self {
        case .rooms: "Lists the rooms, one a line; in a cluster those of this node."
        case .room: "Shows one room: its state, who is in it, and their streams."
        case .nodes:
            """
            Lists the nodes of the cluster as this one sees them: state, region, load (share of time
            for which the workers are busy), rooms, people, where it takes links, seconds since its
            last sign of life, and the link to it with its round trip.
            """
        case .explain:
            """
            Says what of a stream's video a subscription is sent, what is offered, the one limit
            that keeps it from more, what must change, and the last turns to other layers.
            """
        case .talkers:
            """
            Shows a room's active talkers, who is heard and seen by all: the newest start of
            speech first, then the pinned who are silent.
            """
        case .stats:
            """
            Shows what has gone in and out since sfud started. What came in is what was
            forwarded and what was dropped, by cause: docs/ipc.md has the sums.
            """
        case .top:
            """
            Shows the participants of these rooms, or of all, and how they are, each second: bits a
            second in and out (in: from the participant), the largest loss of the last reports, the
            round trip, jitter, what the path to it is estimated to carry, what keeps its video from
            a higher layer, and the freezes of what it watches. Keys sort, scroll, change between
            participants and rooms, and quit; Ctrl-C quits too.
            """
        case .doctor:
            """
            Checks whether sfud answers and what it sheds, its sockets and their buffers, the
            addresses that answers name, the clock, open files, features of the kernel, free disk
            for recordings and the libraries, one a line: ok, warning or fault, and below it what to
            do. Without a running sfud it checks the machine. What it may not read it says; as root,
            or as sfud's user, it reads all. The exit status is 1 if there is a fault.
            """
        case .info: "Shows sfud's version, addresses, DTLS fingerprint and limits."
        case .watch:
            """
            Prints the events of these rooms, or of all, one a line: time (UTC), room, number,
            event, who should hear of it, data. Goes on when sfud was restarted, until it is
            interrupted.
            """
        case .close: "Ends a room; all its participants are disconnected."
        case .lock:
            """
            Lets nobody new into a room, moderators included. Who is there may reconnect, and
            moderators who left may return.
            """
        case .unlock: "Ends a room's lock."
        case .mute:
            """
            Without a participant: silences the audio of all but moderators, of who comes later
            too. With one: drops what it sends, of one kind or of both, from the next packet on.
            """
        case .unmute: "Ends a mute of the room, or of a participant; one leaves the other alone."
        case .drop: "Disconnects participants. They may come back."
        case .approve: "Lets in somebody who has knocked."
        case .deny: "Sends away somebody who has knocked."
        case .floor: "Gives the floor to who has asked for it, refuses it, or takes it back."
        case .role: "Changes a participant's role at once, without asking."
        case .pin: "Pins participants, so that everybody gets their streams."
        case .unpin: "Takes pins away."
        case .state: "Takes a live event from created to ready, ongoing, ended."
        case .tap:
            """
            Sends a stream as plain RTP, audio to PORT, video to PORT + 2, RTCP to the ports above,
            and prints the SDP that a receiver needs; its session name is the tap's.

              sfuctl tap r1 str-abc 127.0.0.1:5000 > stream.sdp
              ffplay -protocol_whitelist file,rtp,udp stream.sdp
            """
        case .untap: "Ends what tap has begun; taps and the SDP say what it is called."
        case .taps: "Lists the streams that go out as plain RTP, of a room or of all."
        case .upgrade:
            """
            Replaces the running sfud by the program at BINARY, or at the path where it was started,
            in the same process and on the same ports. Waits for the new one, and prints the
            versions. Calls go on.
            """
        case .call:
            """
            Calls a method of the contract (docs/ipc.md) and prints its result as JSON:

              sfuctl call room.create '{"room":"r1","settings":{"knock":true}}'
            """
        case .compose:
            """
            Makes one file of a recording's directory (docs/recording.md). Who is seen follows
            joins, leaves and talkers. Files that cannot be used are named and left out. Takes
            FFmpeg's programs. Interrupted, the same command goes on where it was.
            """
        }
    }
}
