/// How the picture is divided among the people in it.
enum ComposeLayout: String, CaseIterable, Codable, Sendable {
    /// Everybody in tiles of one size.
    case grid
    /// The screen, or who speaks, large; the others in a row beneath.
    case stage
    /// The two who spoke last, in halves; with a screen, the screen and a column of people.
    case sideBySide = "side-by-side"
}

/// A width and a height in pixels.
struct PixelSize: Equatable, Hashable, Codable, Sendable {
    var width: Int
    var height: Int

    var area: Int { width * height }
}

/// What `sfuctl compose` is told.
struct ComposeOptions: Equatable, Sendable {
    /// The recording's directory.
    var directory = ""
    var output = ""
    var layout = ComposeLayout.grid
    /// Of the picture; both even.
    var size = PixelSize(width: 1_280, height: 720)
    /// A font file for the names; `nil` for one of the system's.
    var font: String?
    /// Print the plan and do nothing.
    var isDryRun = false
}

extension ComposeOptions {
    /// The options' names that are followed by a value.
    private static let valued = ["-o", "--output", "--layout", "--size", "--font"]

    /// Whether `argument` is one of them, or one with `=` and its value.
    static func isValued(_ argument: String) -> Bool {
        valued.contains {
            argument == $0 || argument.hasPrefix("--") && argument.hasPrefix("\($0)=")
        }
    }

    /// Which sizes the picture may have.
    static let widths = 320...3_840
    static let heights = 180...2_160

    /// Takes one option, as `name` and `value`.
    ///
    /// - Throws: `UsageError` that names what makes no sense.
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

    /// Checks that nothing is missing, once all options were taken.
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
    /// Reads a size of the picture, such as `1280x720`.
    fileprivate init?(_ text: String) {
        let parts = text.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, let width = Int(parts[0]), let height = Int(parts[1]),
            ComposeOptions.widths.contains(width), ComposeOptions.heights.contains(height),
            width.isMultiple(of: 2), height.isMultiple(of: 2)
        else { return nil }
        self.init(width: width, height: height)
    }
}
