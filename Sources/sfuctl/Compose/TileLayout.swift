/// A rectangle of the picture, in pixels from its upper left corner; all values even.
struct PixelRect: Equatable, Hashable, Codable, Sendable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    var size: PixelSize { PixelSize(width: width, height: height) }

    /// Returns the largest centered rectangle with the aspect ratio of `size`.
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
    /// Returns the largest size of this aspect ratio within `room`: even, at least 2.
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

/// A participant or a shared screen to be shown.
struct Face: Equatable, Sendable {
    var participant: String
    var name: String
    var isScreen = false
    /// Whether the participant began to speak last.
    var isTalking = false
    /// Index of the clip that shows it; `nil` for the name on a dark tile.
    var clip: Int?
}

/// A face with its position in the picture.
struct Tile: Equatable, Sendable {
    var face: Face
    /// Position of the video.
    var picture: PixelRect
    /// Position of the name, below the video.
    var label: PixelRect
}

/// Visible participants, the order in which they last spoke, and who is pinned.
struct Scene: Equatable, Sendable {
    /// Participants and screens in the order in which they appeared.
    var faces: [Face]
    /// Participants, the last speaker first.
    var recency: [String]
    /// Pinned participants, in the order of the pins.
    var pins: [String] = []

    /// Faces of the pinned participants that have a picture, of each the screen first.
    var pinned: [Face] {
        pins.flatMap { id in
            let own = faces.filter { $0.participant == id && $0.clip != nil }
            return own.filter(\.isScreen) + own.filter { !$0.isScreen }
        }
    }
}

/// Division of the picture into tiles.
struct TileLayout: Sendable {
    var kind: ComposeLayout
    var size: PixelSize

    /// Most tiles in a grid; with more, faces become unrecognizable.
    static let gridLimit = 16
    /// Most pictures on a stage, as in live streams.
    static let stageLimit = 9
    /// Most participants in the row below a stage.
    static let rowLimit = 6
    /// Most participants in the column beside a screen.
    static let columnLimit = 4

    /// Pixels between tiles and around the picture.
    var gap: Int { max(2, size.height / 180 * 2) }
    /// Height of names, in pixels.
    var fontSize: Int { max(10, size.height / 36) }
    private var labelHeight: Int { fontSize * 4 / 5 * 2 }

    func tiles(_ scene: Scene) -> [Tile] {
        let ranking = scene.pinned.map(\.participant) + scene.recency
        let screens = scene.faces.filter(\.isScreen)
        let people = scene.faces.filter { !$0.isScreen }
        var whole = PixelRect(x: 0, y: 0, width: size.width, height: size.height)
        switch kind {
        case .grid:
            return grid(chosen(screens + people, Self.gridLimit, ranking), in: whole)
        case .stage:
            var large = stage(scene)
            if large.isEmpty { large = chosen(people, 1, ranking) }
            let others = chosen(people.filter { !large.contains($0) }, Self.rowLimit, ranking)
            guard !others.isEmpty else { return grid(large, in: whole) }
            let row = whole.cutBottom(size.height * 2 / 9)
            return grid(large, in: whole) + self.row(others, in: row)
        case .sideBySide:
            guard let screen = screens.last else {
                return columns(chosen(people, 2, ranking), in: whole)
            }
            let others = chosen(people, Self.columnLimit, ranking)
            guard !others.isEmpty else { return grid([screen], in: whole) }
            let column = whole.cutRight(size.width / 4)
            return [tile(screen, in: whole.inset(gap))] + self.column(others, in: column)
        }
    }

    /// Returns what a stage shows side by side, as live streams do: the newest screen, and the
    /// pictures of all who are pinned.
    private func stage(_ scene: Scene) -> [Face] {
        var large: [Face] = []
        for face in [scene.faces.last(where: \.isScreen)].compactMap(\.self) + scene.pinned
        where large.count < Self.stageLimit && !large.contains(face) {
            large.append(face)
        }
        return large
    }

    /// Returns at most `limit` faces: screens first, then those of the ranking, then the earliest.
    ///
    /// They keep their order of appearance, so that speaking does not move a tile.
    private func chosen(_ faces: [Face], _ limit: Int, _ ranking: [String]) -> [Face] {
        guard faces.count > limit else { return faces }
        var ranks: [String: Int] = [:]
        for (rank, participant) in ranking.enumerated() where ranks[participant] == nil {
            ranks[participant] = rank
        }
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

    /// Returns a centered row whose tiles are as wide as those of a full row.
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
    /// Removes a strip from the bottom and returns it.
    fileprivate mutating func cutBottom(_ strip: Int) -> PixelRect {
        let strip = strip / 2 * 2
        height -= strip
        return PixelRect(x: x, y: y + height, width: width, height: strip)
    }

    /// Removes a strip from the right and returns it.
    fileprivate mutating func cutRight(_ strip: Int) -> PixelRect {
        let strip = strip / 2 * 2
        width -= strip
        return PixelRect(x: x + width, y: y, width: strip, height: height)
    }

    /// Returns the rectangle reduced by half of `gap` on each side, with even values.
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
