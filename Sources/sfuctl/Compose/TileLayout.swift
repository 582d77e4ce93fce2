/// A rectangle of the picture, in pixels from its upper left corner; all even.
struct PixelRect: Equatable, Hashable, Codable, Sendable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    var size: PixelSize { PixelSize(width: width, height: height) }

    /// The rectangle in the middle of this one that has the shape of `size`, as large as can be.
    func fitting(_ size: PixelSize) -> PixelRect {
        let fitted = size.fitted(into: self.size)
        return PixelRect(
            x: x + (width - fitted.width) / 4 * 2,
            y: y + (height - fitted.height) / 4 * 2,
            width: fitted.width,
            height: fitted.height
        )
    }
}

extension PixelSize {
    /// The size of this shape that just fits into `room`: even, at least 2, and at most `room`.
    func fitted(into room: PixelSize) -> PixelSize {
        guard width > 0, height > 0 else { return room }
        let scale = min(
            Double(room.width) / Double(width),
            Double(room.height) / Double(height)
        )
        func even(_ length: Int, _ limit: Int) -> Int {
            min(max(2, Int((Double(length) * scale / 2).rounded()) * 2), limit)
        }
        return PixelSize(width: even(width, room.width), height: even(height, room.height))
    }
}

/// Somebody, or somebody's screen, who is to be seen.
struct Face: Equatable, Sendable {
    var participant: String
    var name: String
    var isScreen = false
    /// Whether this is who began to speak last.
    var isTalking = false
    /// Which of the footage's clips shows it; `nil` shows the name on a dark tile.
    var clip: Int?
}

/// A face with its place in the picture.
struct Tile: Equatable, Sendable {
    var face: Face
    /// Where the picture goes.
    var picture: PixelRect
    /// Where the name goes, beneath.
    var label: PixelRect
}

/// Who can be seen, and who spoke.
struct Scene: Equatable, Sendable {
    /// In the order in which they came; screens too.
    var faces: [Face]
    /// Participants, who spoke last first.
    var recency: [String]
}

/// Divides the picture.
struct TileLayout: Sendable {
    var kind: ComposeLayout
    var size: PixelSize

    /// The most tiles in a grid: in more, nobody can be recognized.
    static let gridLimit = 16
    /// The most people in the row beneath a stage.
    static let rowLimit = 6
    /// The most people in the column beside a screen.
    static let columnLimit = 4

    /// Between tiles, and about the picture.
    var gap: Int { max(2, size.height / 180 * 2) }
    /// The height of names, in pixels.
    var fontSize: Int { max(10, size.height / 36) }
    private var labelHeight: Int { fontSize * 4 / 5 * 2 }

    func tiles(_ scene: Scene) -> [Tile] {
        let screens = scene.faces.filter(\.isScreen)
        let people = scene.faces.filter { !$0.isScreen }
        var whole = PixelRect(x: 0, y: 0, width: size.width, height: size.height)
        switch kind {
        case .grid:
            return grid(chosen(screens + people, Self.gridLimit, scene.recency), in: whole)
        case .stage:
            guard let large = screens.last ?? chosen(people, 1, scene.recency).first else {
                return []
            }
            let others = chosen(people.filter { $0 != large }, Self.rowLimit, scene.recency)
            guard !others.isEmpty else { return grid([large], in: whole) }
            let row = whole.cutBottom(size.height * 2 / 9)
            return [tile(large, in: whole.inset(gap))] + self.row(others, in: row)
        case .sideBySide:
            guard let screen = screens.last else {
                let two = chosen(people, 2, scene.recency)
                return columns(two, in: whole)
            }
            let others = chosen(people, Self.columnLimit, scene.recency)
            guard !others.isEmpty else { return grid([screen], in: whole) }
            let column = whole.cutRight(size.width / 4)
            return [tile(screen, in: whole.inset(gap))] + self.column(others, in: column)
        }
    }

    /// At most `limit` of the faces: screens, then who spoke last, then who came first.
    ///
    /// They stay in the order in which they came, so that nobody changes places for having spoken.
    private func chosen(_ faces: [Face], _ limit: Int, _ recency: [String]) -> [Face] {
        guard faces.count > limit else { return faces }
        var ranks: [String: Int] = [:]
        for (rank, participant) in recency.enumerated() { ranks[participant] = rank }
        let ranked = faces.indices.sorted { left, right in
            let (one, other) = (faces[left], faces[right])
            if one.isScreen != other.isScreen { return one.isScreen }
            let (rank, otherRank) = (
                ranks[one.participant] ?? .max, ranks[other.participant] ?? .max
            )
            return rank == otherRank ? left < right : rank < otherRank
        }
        return ranked.prefix(limit).sorted().map { faces[$0] }
    }

    private func grid(_ faces: [Face], in area: PixelRect) -> [Tile] {
        guard !faces.isEmpty else { return [] }
        let columns = Int(Double(faces.count).squareRoot().rounded(.up))
        let rows = (faces.count + columns - 1) / columns
        let height = area.height / rows
        return (0..<rows).flatMap { row in
            let inRow = faces.dropFirst(row * columns).prefix(columns)
            let band = PixelRect(
                x: area.x,
                y: area.y + row * height,
                width: area.width,
                height: height
            )
            return self.row(Array(inRow), in: band, width: area.width / columns)
        }
    }

    private func columns(_ faces: [Face], in area: PixelRect) -> [Tile] {
        faces.isEmpty ? [] : row(faces, in: area, width: area.width / faces.count)
    }

    /// A row in the middle of `area`, of tiles as wide as those of a full one.
    private func row(_ faces: [Face], in area: PixelRect) -> [Tile] {
        row(faces, in: area, width: area.width / Self.rowLimit)
    }

    private func row(_ faces: [Face], in area: PixelRect, width: Int) -> [Tile] {
        let left = area.x + (area.width - width * faces.count) / 2
        return faces.enumerated().map { index, face in
            let cell = PixelRect(
                x: left + index * width,
                y: area.y,
                width: width,
                height: area.height
            )
            return tile(face, in: cell.inset(gap))
        }
    }

    private func column(_ faces: [Face], in area: PixelRect) -> [Tile] {
        let height = area.height / Self.columnLimit
        let top = area.y + (area.height - height * faces.count) / 2
        return faces.enumerated().map { index, face in
            let cell = PixelRect(
                x: area.x,
                y: top + index * height,
                width: area.width,
                height: height
            )
            return tile(face, in: cell.inset(gap))
        }
    }

    private func tile(_ face: Face, in cell: PixelRect) -> Tile {
        var picture = cell
        let label = picture.cutBottom(labelHeight)
        return Tile(face: face, picture: picture, label: label)
    }
}

extension PixelRect {
    /// Cuts a strip off the lower end, and returns it.
    fileprivate mutating func cutBottom(_ strip: Int) -> PixelRect {
        let strip = strip / 2 * 2
        height -= strip
        return PixelRect(x: x, y: y + height, width: width, height: strip)
    }

    /// Cuts a strip off the right end, and returns it.
    fileprivate mutating func cutRight(_ strip: Int) -> PixelRect {
        let strip = strip / 2 * 2
        width -= strip
        return PixelRect(x: x + width, y: y, width: strip, height: height)
    }

    /// Half of `gap` taken off each side, and all of it made even.
    fileprivate func inset(_ gap: Int) -> PixelRect {
        let margin = gap / 2
        func even(_ value: Int) -> Int { value / 2 * 2 }
        let left = even(x + margin + 1)
        let top = even(y + margin + 1)
        return PixelRect(
            x: left,
            y: top,
            width: max(2, even(x + width - margin - left)),
            height: max(2, even(y + height - margin - top))
        )
    }
}
