import Foundation

/// The folder from which a Janus of the bench's own takes its configuration.
///
/// Only the VideoRoom and the Unix socket transport are loaded. What is not named stays at
/// Debian's defaults, but for what would cost Janus something that sfud does not do either.
struct JanusConfiguration {
    var folder: String
    /// Threads for ICE, DTLS, SRTP and sending; 0: one for each transport.
    var eventLoops: Int

    /// Where Janus listens.
    var socket: String { folder + "/api" }
    private var main: String { folder + "/janus.jcfg" }

    /// What Janus is started with.
    var arguments: [String] { ["--configs-folder=\(folder)", "--config=\(main)"] }

    /// Writes the files.
    ///
    /// - Throws: what Foundation says of a folder that cannot be written.
    func write() throws {
        try write(text, to: main)
        try write(transport, to: folder + "/janus.transport.pfunix.jcfg")
        try write("general: {}\n", to: folder + "/janus.plugin.videoroom.jcfg")
    }

    private func write(_ text: String, to path: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    /// ICE lite saves Janus checks of its own, and no port range leaves the ports to the kernel.
    private var text: String {
        """
        general: {
            configs_folder = "\(folder)"
            debug_timestamps = true
            debug_colors = false
            session_timeout = 0
            event_loops = \(eventLoops)
        }
        media: { ipv6 = false }
        nat: { ice_lite = true, ignore_mdns = true }
        plugins: { disable = "\(Self.names(Self.otherPlugins))" }
        transports: { disable = "\(Self.names(Self.otherTransports))" }
        loggers: { disable = "libjanus_jsonlog.so" }

        """
    }

    private var transport: String {
        """
        general: { enabled = true, json = "compact", path = "\(socket)", type = "SOCK_SEQPACKET" }
        admin: { admin_enabled = false }

        """
    }

    private static func names(_ plugins: [String]) -> String {
        plugins.map { "libjanus_\($0).so" }.joined(separator: ",")
    }

    private static let otherPlugins = [
        "audiobridge", "duktape", "echotest", "lua", "nosip", "recordplay", "sip", "streaming",
        "textroom", "videocall", "voicemail",
    ]
    private static let otherTransports = ["http", "mqtt", "nanomsg", "rabbitmq", "websockets"]
}
