import Contract
import Foundation
import JSON

/// Inspection of a recording's files for usability.
struct Prober {
    var ffprobe: ExternalProgram
    var directory: URL
    var interruption: Interruption

    /// Video or audio packets at the start of a file, one of which must be decodable.
    private static let triedPackets = 100

    /// Content of a file, or the reason why it is unusable.
    enum ProbeResult: Equatable {
        case usable(Probe)
        /// The problem, and the part that can be used nevertheless.
        case damaged(String, Probe)
        case useless(String)
    }

    func probeResult(_ file: RecordedFile, in session: RecordedSession) throws -> ProbeResult {
        guard file.kind == "audio" || file.kind == "video" else {
            return .useless("it is neither audio nor video")
        }
        guard let url = Self.location(file.path, in: directory) else {
            return .useless("its path leads out of the recording")
        }
        guard FileManager.default.isReadableFile(atPath: url.path) else {
            return .useless("it is missing")
        }
        guard var probe = try head(url, file.kind) else {
            return .useless("it cannot be decoded")
        }
        if file.complete, let duration = file.duration {
            probe.end = max(probe.end, duration)
        } else {
            probe.end = try end(url, file.kind)
        }
        guard Footage.isPlausible(file, probe, in: session) else {
            return .useless("its times are not those of this session")
        }
        guard file.complete else {
            let seconds = ffmpegSeconds(probe.end).dropLast(5)
            return .damaged("it was not finished, and holds \(seconds) s", probe)
        }
        return .usable(probe)
    }

    /// Returns the URL of a recording's file, or `nil` if the path leads outside.
    static func location(_ path: String, in directory: URL) -> URL? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let isWithin = !parts.contains { $0.isEmpty || $0 == ".." } && !path.contains("\0")
        return isWithin ? directory.appending(path: path) : nil
    }

    /// Reads and decodes the first packets.
    private func head(_ url: URL, _ kind: String) throws -> Probe? {
        var lines: [Substring] = []
        let ending = try ffprobe.run(
            [
                "-v", "error", "-select_streams", kind == "video" ? "v:0" : "a:0",
                "-read_intervals", "%+#\(Self.triedPackets)", "-count_frames", "-show_entries",
                "stream=width,height,nb_read_frames:format=start_time", "-of", "json",
                "file:\(url.path)",
            ],
            interruption: interruption
        ) { lines.append($0) }
        guard ending.isSuccess else { return nil }
        return Self.head(Array(lines.joined(separator: "\n").utf8))
    }

    /// Parses the report of `ffprobe`; returns `nil` if no picture or sample could be decoded.
    static func head(_ report: [UInt8]) -> Probe? {
        guard let json = try? JSON(parsing: report),
            case .array(let streams)? = json["streams"], let stream = streams.first,
            case .string(let decoded)? = stream["nb_read_frames"], let count = Int(decoded),
            count > 0
        else { return nil }
        var begin = 0.0
        if case .string(let text)? = json["format"]?["start_time"] { begin = Double(text) ?? 0 }
        var size: PixelSize?
        if case .integer(let width)? = stream["width"],
            case .integer(let height)? = stream["height"], width > 0, height > 0
        {
            size = PixelSize(width: Int(width), height: Int(height))
        }
        return Probe(begin: begin, end: begin, size: size)
    }

    /// Returns the end time of the last packet in an unfinished file.
    private func end(_ url: URL, _ kind: String) throws -> Double {
        var end = 0.0
        _ = try ffprobe.run(
            [
                "-v", "error", "-select_streams", kind == "video" ? "v:0" : "a:0",
                "-show_entries", "packet=pts_time,duration_time", "-of", "csv=print_section=0",
                "file:\(url.path)",
            ],
            interruption: interruption
        ) { line in
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
            guard let time = fields.first.flatMap({ Double($0) }), time.isFinite else { return }
            let duration = fields.dropFirst().first.flatMap { Double($0) } ?? 0
            end = max(end, time + max(0, duration))
        }
        return end
    }
}
