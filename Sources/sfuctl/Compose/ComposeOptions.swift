/// Arrangement of the participants in the picture.
enum ComposeLayout: String, CaseIterable, Codable, Sendable {
    /// All participants in tiles of equal size.
    case grid
    /// The screen and who is pinned, or else the active speaker, large; the others in a row below.
    case stage
    /// The last two speakers in halves; with a screen, the screen and a column of participants.
    case sideBySide = "side-by-side"
}

/// Width and height in pixels.
struct PixelSize: Equatable, Hashable, Codable, Sendable {
    var width: Int
    var height: Int

    var area: Int { width * height }
}

/// Options of `sfuctl compose`.
struct ComposeOptions: Equatable, Sendable {
    /// Directory of the recording.
    var directory = ""
    var output = ""
    var layout = ComposeLayout.grid
    /// Size of the picture; both sides even.
    var size = PixelSize(width: 1_280, height: 720)
    /// Font file for the names; `nil` for a default font of the system.
    var font: String?
    /// Whether only the plan is printed.
    var isDryRun = false
}

extension ComposeOptions {
    /// Names of the options that take a value.
    private static let valued = ["-o", "--output", "--layout", "--size", "--font"]

    /// Whether `argument` is such an option, or a long one with `=` and its value.
    static func takesValue(_ argument: String) -> Bool {
        valued.contains {
            argument == $0 || argument.hasPrefix("--") && argument.hasPrefix("\($0)=")
        }
    }

    /// Allowed widths of the picture, in pixels.
    static let widths = 320...3_840
    static let heights = 180...2_160

    /// Applies one option.
    ///
    /// - Throws: `UsageError` that names the invalid value.
    mutating func take(_ name: String, _ value: String) throws(UsageError) {
        switch name {
        case "-o", "--output": output = value
        case "--layout":
            guard let layout = ComposeLayout(rawValue: value) else {
                let all = ComposeLayout.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError(message: "\"\(value)\" is none of \(all)", topic: .compose)
            }
            self.layout = layout
        case "--font": font = value
        default:
            guard let size = PixelSize(value) else {
                throw UsageError(
                    message: "\"\(value)\" is no size: WIDTHxHEIGHT, both even, "
                        + "320x180 to 3840x2160",
                    topic: .compose
                )
            }
            self.size = size
        }
    }

    /// Returns the options if none is missing; called after the last option.
    ///
    /// - Throws: `UsageError`.
    func checked() throws(UsageError) -> Self {
        guard !output.isEmpty || isDryRun else {
            throw UsageError(message: "compose needs -o FILE, or --dry-run", topic: .compose)
        }
        return self
    }
}

extension PixelSize {
    /// Parses a picture size such as `1280x720`; `nil` if invalid.
    fileprivate init?(_ text: String) {
        let parts = text.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, let width = Int(parts[0]), let height = Int(parts[1]),
            ComposeOptions.widths.contains(width), ComposeOptions.heights.contains(height),
            width.isMultiple(of: 2), height.isMultiple(of: 2)
        else { return nil }
        self.init(width: width, height: height)
    }
}
