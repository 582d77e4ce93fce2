import Foundation
import Kernel
import RTP

/// Thread that composes pictures and audio at a constant rate, independent of arrivals.
final class StreamComposer: Sendable {
    private let studio: StreamPlayout
    private let sink: StreamSink
    private let encoder: StreamEncoder

    init(_ studio: StreamPlayout, _ sink: StreamSink, _ encoder: StreamEncoder) {
        self.studio = studio
        self.sink = sink
        self.encoder = encoder
    }

    func start() {
        let thread = Thread { @Sendable [self] in run() }
        thread.name = "composer"
        thread.stackSize = 1 << 20
        thread.start()
    }

    private func run() {
        let rate = Int64(StreamEncoder.pictureRate)
        let settings = studio.settings
        var canvas = StreamCanvas(width: settings.width, height: settings.height)
        var nextPicture: Int64 = 0
        var sound: Int64 = 0
        while true {
            let now = Instant.monotonic()
            let passed = now.nanoseconds(since: studio.start)
            let samples = passed / 1_000 * Int64(AudioMixer.rate) / 1_000_000
            while sound + Int64(StreamEncoder.soundSamples) <= samples {
                encodeSound(at: sound)
                sound += Int64(StreamEncoder.soundSamples)
            }
            let picture = passed / 1_000 * rate / 1_000_000
            if picture >= nextPicture {
                nextPicture = picture + 1
                compose(&canvas, at: now)
                if sink.isOpen {
                    let isKeyframe = sink.takeKeyframeRequest()
                    sink.take(
                        encoder.encode(
                            picture: canvas.bytes,
                            number: picture,
                            isKeyframe: isKeyframe
                        )
                    )
                }
            }
            // Audio has 47 packets a second, video 30 pictures, so poll at least every 10 ms.
            let next = studio.start.advanced(nanoseconds: (picture + 1) * 1_000_000_000 / rate)
            let wait = next.nanoseconds(since: .monotonic())
            if wait > 0 { Thread.sleep(forTimeInterval: min(Double(wait) / 1e9, 0.01)) }
        }
    }

    private func encodeSound(at position: Int64) {
        let samples = studio.state.withLock { $0.mixer.take(StreamEncoder.soundSamples) }
        guard sink.isOpen else { return }
        sink.take(encoder.encode(sound: samples, position: position))
    }

    private func compose(_ canvas: inout StreamCanvas, at now: Instant) {
        let time = now.advanced(milliseconds: -StreamPlayout.delayMilliseconds)
        let pictures = studio.state.withLock { $0.stage.pictures(until: time, at: now) }
        let tiles = StreamGrid.tiles(
            pictures.count,
            width: canvas.width,
            height: canvas.height
        )
        // A single picture that fills the canvas needs no background.
        if pictures.count != 1 || pictures.first??.width != canvas.width { canvas.clear() }
        for (tile, picture) in zip(tiles, pictures) {
            // Skip a picture sized for an earlier grid; the next one has the right size.
            guard let picture, picture.width == tile.width, picture.height == tile.height else {
                continue
            }
            canvas.put(
                picture.bytes,
                width: tile.width,
                height: tile.height,
                x: tile.x,
                y: tile.y
            )
        }
    }
}
