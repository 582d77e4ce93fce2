import Foundation

/// Configuration folder of a Janus that the bench starts.
///
/// Only the VideoRoom and the Unix socket transport are loaded. Other settings keep Debian's
/// defaults, except for features that would cost Janus work that sfud does not do either.
struct JanusConfiguration {
    var folder: String
    /// Threads for ICE, DTLS, SRTP and sending; 0 for one for each transport.
    var eventLoops: Int

    /// Path of the API socket.
    var socket: String { folder + "/api" }
    private var main: String { folder + "/janus.jcfg" }

    /// Command-line arguments of Janus.
    var arguments: [String] { ["--configs-folder=\(folder)", "--config=\(main)"] }

    /// Writes the configuration files.
    ///
    /// - Throws: Foundation's error if the folder cannot be written.
    func write() throws {
        try write(text, to: main)
        try write(transport, to: folder + "/janus.transport.pfunix.jcfg")
        try write("general: {}\n", to: folder + "/janus.plugin.videoroom.jcfg")
    }

    private func write(_ text: String, to path: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    /// Main configuration.
    ///
    /// ICE lite saves Janus its own checks; without a port range the kernel chooses the ports.
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
