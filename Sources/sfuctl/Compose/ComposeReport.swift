import JSON

/// Text and JSON output of a plan.
enum ComposeReport {
    static func text(_ plan: ComposePlan) -> String {
        var table = Table([
            ("FROM", .right), ("TO", .right), ("LAYOUT", .left), ("SEEN", .left),
        ])
        for segment in plan.segments {
            let names = segment.tiles.map { tile in
                let talking = tile.face.isTalking ? "*" : ""
                return tile.face.clip == nil
                    ? "(\(tile.face.name))\(talking)" : "\(tile.face.name)\(talking)"
            }
            table.add([
                time(segment.frames.lowerBound), time(segment.frames.upperBound),
                plan.options.layout.rawValue,
                names.isEmpty ? "-" : names.joined(separator: ", "),
            ])
        }
        let size = plan.options.size
        let sounds = plan.clips.count { !$0.isVideo }
        return """
            \(table.text)

            \(time(plan.frames)) of \(size.width)x\(size.height), from \
            \(plan.clips.count - sounds) files of pictures and \(sounds) of sound.
            In brackets: the camera is off. With a star: spoke last.
            """
    }

    static func json(_ plan: ComposePlan) -> JSON {
        let rate = Double(ComposePlan.frameRate)
        let segments = plan.segments.map { segment -> JSON in
            let tiles = segment.tiles.map { tile -> JSON in
                var members: [String: JSON] = [
                    "participant": .string(tile.face.participant),
                    "name": .string(tile.face.name),
                    "screen": .bool(tile.face.isScreen),
                    "talking": .bool(tile.face.isTalking),
                    "picture": JSON(encoding: tile.picture),
                ]
                if let clip = tile.face.clip {
                    members["path"] = .string(plan.clips[clip].path)
                }
                return .object(members)
            }
            return [
                "start": .number(Double(segment.frames.lowerBound) / rate),
                "end": .number(Double(segment.frames.upperBound) / rate),
                "tiles": .array(tiles),
            ]
        }
        return [
            "duration": .number(Double(plan.frames) / rate),
            "layout": .string(plan.options.layout.rawValue),
            "size": JSON(encoding: plan.options.size),
            "segments": .array(segments),
        ]
    }

    /// Formats minutes, seconds and tenths.
    private static func time(_ frames: Int) -> String {
        let tenths = (frames * 10 + ComposePlan.frameRate / 2) / ComposePlan.frameRate
        return ComposeProgress.clock(Double(tenths / 10)) + ".\(tenths % 10)"
    }
}
