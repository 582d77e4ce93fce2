/// Position and size of a tile in the picture, in pixels; all numbers are even.
package struct StreamTile: Hashable, Sendable {
    package var x: Int
    package var y: Int
    package var width: Int
    package var height: Int

    package init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }
}

/// Grid layout of tiles of one size; the last row is centered.
package enum StreamGrid {
    /// Lays out 0 to 9 tiles in a picture; its sides must be even and at least 160.
    package static func tiles(_ count: Int, width: Int, height: Int) -> [StreamTile] {
        guard count > 0 else { return [] }
        let columns = count == 1 ? 1 : count <= 4 ? 2 : 3
        let rows = (count + columns - 1) / columns
        let tileWidth = width / columns / 2 * 2
        // Two tiles side by side have the size of four, and are centered vertically.
        let tileHeight = height / max(columns, rows) / 2 * 2
        let top = (height - rows * tileHeight) / 4 * 2
        return (0..<count).map { index in
            let row = index / columns
            let inRow = row == rows - 1 ? count - row * columns : columns
            let left = (width - inRow * tileWidth) / 4 * 2
            return StreamTile(
                x: left + index % columns * tileWidth,
                y: top + row * tileHeight,
                width: tileWidth,
                height: tileHeight
            )
        }
    }
}
