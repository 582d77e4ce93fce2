import CKernel
import Foundation
import Kernel
import RTP

/// Main program of the process that produces one live stream from frames read on standard input.
///
/// It ends at end of file, so no process is left behind when the daemon is gone.
package enum Streamer {
    /// Socket to the daemon: receives frames, sends reports.
    private static let descriptor: Int32 = 0
    private static let bufferBytes = 1 << 16
    /// Milliseconds for ending the stream properly at the server.
    private static let finishMilliseconds = 500

    /// Runs until the stream ends; returns the exit status.
    package static func main() -> Int32 {
        kernel_serve_in_background()
        var input = StreamDeframer()
        guard case .begin(let settings)? = next(&input) else { return 0 }
        // Enter the sandbox before starting threads, and before reading any untrusted media.
        let missing = StreamerSandbox.enter(authority: settings.authority)
        if !missing.isEmpty { report(.unconfined(parts: missing)) }
        // Slices of a picture are encoded in parallel, on up to four cores.
        let threads = max(1, min(4, ProcessInfo.processInfo.activeProcessorCount))
        let encoder = StreamEncoder(
            width: settings.width,
            height: settings.height,
            bitrate: settings.bitrate,
            threads: threads
        )
        guard let encoder else {
            report(.ended(reason: "no-encoder"))
            return 0
        }
        let studio = StreamPlayout(settings, at: .monotonic())
        let sink = StreamSink(settings, encoder)
        sink.start()
        StreamComposer(studio, sink, encoder).start()
        var decoding = StreamDecoding(studio)
        while let message = next(&input), message != .end { decoding.take(message) }
        sink.stop(milliseconds: finishMilliseconds)
        return 0
    }

    /// Waits for the next message; returns `nil` at the end of input.
    private static func next(_ input: inout StreamDeframer) -> StreamMessage? {
        var buffer = [UInt8](repeating: 0, count: bufferBytes)
        while true {
            if let body = input.next() {
                guard let message = StreamWireFormat.message(body) else { continue }
                return message
            }
            guard !input.isBroken else { return nil }
            var places = buffer.mutableSpan
            let count = Int(kernel_read(descriptor, &places))
            guard count > 0 else { return nil }
            input.append(buffer[..<count])
        }
    }

    static func report(_ report: StreamReport) {
        // The daemon reads all reports; if the write fails, it is gone.
        _ = kernel_write(descriptor, StreamWireFormat.encoded(report).span)
    }
}
