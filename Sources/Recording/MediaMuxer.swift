package import CAVFormat
package import WorkerInterface

/// Muxer of one track into WebM or Matroska bytes, which the caller writes to disk.
///
/// Safe: it owns libavformat's muxer, and is used by one thread.
@safe
package final class MediaMuxer {
    /// Bytes with their offset in the file.
    package struct Run: Sendable {
        var offset: Int
        package var bytes: [UInt8]
    }

    private let muxer: UnsafeMutablePointer<av_muxer>

    /// Returns the file name extension for a codec.
    static func fileExtension(for codec: Codec) -> String { codec == .h264 ? "mkv" : "webm" }

    /// Returns `nil` if libavformat rejects the format.
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

    /// Adds a frame; `milliseconds` must increase from frame to frame.
    ///
    /// - Returns: `false` if libavformat rejects it.
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

    /// Ends the current cluster; returns the bytes to write.
    func flush() -> [Run] {
        unsafe av_muxer_flush(muxer)
        return takeRuns()
    }

    /// Finalizes the file's trailer and header; returns the bytes to write.
    ///
    /// No frame may follow.
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
