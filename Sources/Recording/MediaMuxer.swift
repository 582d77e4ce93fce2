package import CAVFormat
package import WorkerInterface

/// Writes one track into a WebM or Matroska file, whose bytes others put on disk.
///
/// Safe: it owns libavformat's muxer, and is used by one thread.
@safe
package final class MediaMuxer {
    /// Bytes, and where in the file they belong.
    package struct Run: Sendable {
        var offset: Int
        package var bytes: [UInt8]
    }

    private let muxer: UnsafeMutablePointer<av_muxer>

    /// What a file of this codec is called at its end.
    static func fileExtension(for codec: Codec) -> String { codec == .h264 ? "mkv" : "webm" }

    /// Returns `nil` where libavformat refuses the format.
    init?(_ format: FrameFormat) {
        let made = unsafe format.configuration.withUnsafeBufferPointer { extradata in
            var track = unsafe av_track(
                codec: Self.codec(format.codec),
                width: Int32(clamping: format.width),
                height: Int32(clamping: format.height),
                extradata: extradata.baseAddress,
                extradata_size: Int32(clamping: extradata.count)
            )
            let name = format.codec == .h264 ? "matroska" : "webm"
            return unsafe av_muxer_create(name, &track)
        }
        guard let made = unsafe made else { return nil }
        unsafe muxer = made
    }

    deinit { unsafe av_muxer_destroy(muxer) }

    package static func codec(_ codec: Codec) -> av_codec {
        switch codec {
        case .opus, .red: AV_OPUS
        case .vp8: AV_VP8
        case .vp9: AV_VP9
        case .h264: AV_H264
        case .av1: AV_AV1
        }
    }

    /// Adds a frame; `milliseconds` grow from frame to frame.
    ///
    /// - Returns: `false` where libavformat refuses it.
    func add(_ frame: [UInt8], milliseconds: Int64, isKeyframe: Bool) -> Bool {
        let status = unsafe frame.withUnsafeBufferPointer { bytes in
            unsafe av_muxer_add(
                muxer,
                bytes.baseAddress,
                Int32(clamping: bytes.count),
                milliseconds,
                isKeyframe ? 1 : 0
            )
        }
        return status >= 0
    }

    /// Ends the cluster under way, and hands out what there is to be written.
    func flush() -> [Run] {
        unsafe av_muxer_flush(muxer)
        return takeRuns()
    }

    /// Writes what belongs to the file's end and into its head; nothing can be added after it.
    func finish() -> [Run] {
        unsafe av_muxer_finish(muxer)
        return takeRuns()
    }

    private func takeRuns() -> [Run] {
        var runs: [Run] = []
        var cursor = 0
        var run = av_run()
        var bytes: UnsafePointer<UInt8>?
        while unsafe av_muxer_next(muxer, &cursor, &run, &bytes) != 0 {
            let found = unsafe UnsafeBufferPointer(start: bytes, count: Int(run.count))
            unsafe runs.append(Run(offset: Int(run.offset), bytes: Array(found)))
        }
        unsafe av_muxer_clear(muxer)
        return runs
    }
}
