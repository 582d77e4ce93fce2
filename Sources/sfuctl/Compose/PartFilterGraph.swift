/// Picture of one part: moving tiles on a still background.
struct PartFilterGraph {
    var tiles: [Tile]
    var frames: Range<Int>
    var size: PixelSize
    var reels: [Int: Reel]
    /// Files of the reels, by clip.
    var files: [Int: String]

    /// Name of the font in the working directory.
    static let font = "font"

    /// Texts to draw, by file name.
    ///
    /// They are passed as files because a name may contain characters with a meaning in filter
    /// syntax.
    var texts: [String: String] {
        Dictionary(labels.map { ($0.file, $0.text) }) { first, _ in first }
    }

    var arguments: [String] {
        var inputs: [String] = []
        var chains = background
        var below = "still"
        for (index, tile) in shown.enumerated() {
            let above = index + 1 == shown.count ? "out" : "seen\(index)"
            inputs += tile.input
            chains.append("[\(index):v]\(tile.chain)[tile\(index)]")
            chains.append(
                "[\(below)][tile\(index)]overlay=x=\(tile.rect.x):y=\(tile.rect.y)"
                    + ":eof_action=repeat:format=yuv420[\(above)]"
            )
            below = above
        }
        let rate = ComposePlan.frameRate
        return inputs + [
            "-filter_complex", chains.joined(separator: ";"), "-map", "[\(below)]",
            "-fps_mode", "passthrough", "-frames:v", "\(frames.count)", "-c:v", "libx264",
            "-preset", "veryfast", "-crf", "22", "-profile:v", "high", "-g", "\(4 * rate)",
        ] + VideoEncoding.colours + [
            "-video_track_timescale", VideoEncoding.timescale, "-f", "mp4",
        ]
    }

    /// Tiles with moving pictures.
    private var shown: [Shown] {
        tiles.compactMap { tile in
            guard let clip = tile.face.clip, let reel = reels[clip], let file = files[clip] else {
                return nil
            }
            return Shown(tile, reel, file, frames)
        }
    }

    /// Filter chains that draw the still background once and repeat it.
    private var background: [String] {
        var boxes: [String] = []
        for tile in tiles {
            boxes.append(box(tile.picture, VideoEncoding.tileColour))
            guard tile.face.isTalking && tiles.count > 1 else { continue }
            let shape = shown.first { $0.tile == tile }?.rect ?? tile.picture
            boxes.append(box(frame(about: shape), VideoEncoding.talkingColour))
            boxes.append(box(shape, VideoEncoding.tileColour))
        }
        let canvas = Self.still("black", size) + boxes.map { ",\($0)" }.joined()
        var chains = ["\(canvas)[still0]"]
        for (index, label) in labels.enumerated() {
            chains.append(
                "\(Self.still(label.colour, label.rect.size)),\(label.drawing)[text\(index)]"
            )
            chains.append(
                "[still\(index)][text\(index)]overlay=x=\(label.rect.x):y=\(label.rect.y)"
                    + ":format=yuv420[still\(index + 1)]"
            )
        }
        let rate = ComposePlan.frameRate
        chains.append("[still\(labels.count)]loop=loop=-1:size=1,setpts=N/(\(rate)*TB)[still]")
        return chains
    }

    /// Returns `shape` enlarged a little on all sides.
    private func frame(about shape: PixelRect) -> PixelRect {
        let width = max(2, size.height / 360 * 2)
        return PixelRect(
            x: shape.x - width,
            y: shape.y - width,
            width: shape.width + 2 * width,
            height: shape.height + 2 * width
        )
    }

    private func box(_ rect: PixelRect, _ colour: String) -> String {
        "drawbox=x=\(rect.x):y=\(rect.y):w=\(rect.width):h=\(rect.height)"
            + ":color=\(colour):t=fill"
    }

    private static func still(_ colour: String, _ size: PixelSize) -> String {
        "color=c=\(colour):s=\(size.width)x\(size.height):r=\(ComposePlan.frameRate)"
            + ",format=yuv420p,trim=end_frame=1"
    }

    private var labels: [Label] {
        let fontSize = TileLayout(kind: .grid, size: size).fontSize
        return tiles.compactMap { tile in
            if tile.face.clip != nil {
                return Label(tile.face.name, in: tile.label, "black", fontSize: fontSize)
            }
            let large = Label(tile.face.name, in: tile.picture, fontSize: 2 * fontSize)
            return large?.isWhole == true
                ? large : Label(tile.face.name, in: tile.picture, fontSize: fontSize)
        }
    }
}

/// A tile with a moving picture.
private struct Shown {
    var tile: Tile
    /// Position in the picture.
    var rect: PixelRect
    /// Input arguments of `ffmpeg` for the reel.
    var input: [String]
    var chain: String

    init?(_ tile: Tile, _ reel: Reel, _ file: String, _ frames: Range<Int>) {
        self.tile = tile
        rect = tile.picture.fitting(reel.size)
        // The camera may start a moment after its tile.
        let late = max(0, reel.begin - frames.lowerBound)
        guard late < frames.count else { return nil }
        let first = min(reel.picture(for: frames.lowerBound + late), reel.count - 1)
        let rate = ComposePlan.frameRate
        // Seeks half a frame early, so that rounding cannot skip the frame.
        let seconds = (Double(first) - 0.5) / Double(rate)
        input = (first > 0 ? ["-ss", ffmpegSeconds(seconds)] : []) + ["-i", file]
        chain = "setpts=N/(\(rate)*TB),"
        if rect.size != reel.size {
            chain += "scale=w=\(rect.width):h=\(rect.height):flags=bilinear,"
        }
        if late > 0 { chain += "tpad=start=\(late):color=\(VideoEncoding.tileColour)," }
        chain += "setsar=1"
    }
}

/// A line of text in its own rectangle, truncated if too long.
private struct Label {
    var text: String
    var rect: PixelRect
    var colour: String
    var fontSize: Int
    var isWhole: Bool

    init?(
        _ text: String,
        in rect: PixelRect,
        _ colour: String = VideoEncoding.tileColour,
        fontSize: Int
    ) {
        self.rect = rect
        self.colour = colour
        self.fontSize = fontSize
        // An average letter is a little more than half as wide as it is high.
        let room = max(4, rect.width * 20 / (fontSize * 11))
        let line = Table.printable(text)
        isWhole = line.count <= room
        self.text = !isWhole ? "\(line.prefix(room - 1))…" : line
        if self.text.isEmpty { return nil }
    }

    var file: String {
        var fingerprint = Fingerprint()
        fingerprint.add(text)
        return "name-\(fingerprint.text).txt"
    }

    var drawing: String {
        // All names share one baseline, with or without descenders.
        "drawtext=fontfile=\(PartFilterGraph.font):textfile=\(file):expansion=none"
            + ":fontsize=\(fontSize):fontcolor=white:x='max(2,(w-text_w)/2)'"
            + ":y='(h+\(fontSize)*0.72)/2-max_glyph_a'"
    }
}
