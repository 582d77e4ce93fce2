import Foundation

/// Error that ends the bench, in one line.
struct BenchError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// Recordings of a run, encoded on first use and cached in files.
struct Library: Sendable {
    let audio: Recording
    private let videos: [VideoSettings: Recording]

    /// Simulcast layers like a browser's, smallest first.
    static let simulcast = [
        VideoSettings(width: 320, height: 180, bitrate: 150_000),
        VideoSettings(width: 640, height: 360, bitrate: 500_000),
        VideoSettings(width: 1_280, height: 720, bitrate: 1_500_000),
    ]
    static let camera = simulcast[2]
    static let screen = VideoSettings(
        width: 1_920,
        height: 1_080,
        bitrate: 5_000_000,
        isScreen: true
    )

    func video(_ settings: VideoSettings) -> Recording? { videos[settings] }

    /// Opens the recordings, and encodes missing ones.
    init(_ settings: [VideoSettings], progress: Progress) throws {
        let folder = Self.folder
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        func open(_ name: String, _ make: () throws -> Recording) throws -> Recording {
            let path = "\(folder)/\(name)"
            if let recording = Recording.read(path) { return recording }
            progress.show("encoding \(name)")
            let recording = try make()
            try recording.write(path)
            return recording
        }
        audio = try open("speech.opus") { try Encoders.audio() }
        videos = try Dictionary(
            uniqueKeysWithValues: Set(settings).map { wanted in
                (wanted, try open("\(wanted.name).vp8") { try Encoders.video(wanted) })
            }
        )
    }

    /// Cache folder beside the executable; its name changes with the content.
    private static var folder: String {
        let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return executable.deletingLastPathComponent().appending(path: "bench-media-1").path
    }
}
