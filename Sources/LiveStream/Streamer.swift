import CKernel
import Foundation
import Kernel
import RTP

/// The process that makes one live stream of the frames that come through its standard input.
///
/// It ends when that does, so none stays behind when the daemon is gone.
package enum Streamer {
    /// The socket to the daemon: frames come, reports go.
    private static let descriptor: Int32 = 0
    private static let bufferBytes = 1 << 16
    /// For the server to be taken leave of.
    private static let finishMilliseconds = 500

    /// Returns the exit status.
    package static func main() -> Int32 {
        kernel_serve_in_background()
        var input = StreamInput()
        guard case .begin(let settings)? = next(&input) else { return 0 }
        // Before there are threads, and before anything of a stranger's has come.
        let missing = StreamerSandbox.enter(authority: settings.authority)
        if !missing.isEmpty { report(.unconfined(parts: missing)) }
        // Pictures are encoded in slices side by side, as far as there are cores.
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
        let studio = StreamStudio(settings, at: .monotonic())
        let sink = StreamSink(settings, encoder)
        sink.start()
        StreamComposer(studio, sink, encoder).start()
        var decoding = StreamDecoding(studio)
        while let message = next(&input), message != .end { decoding.take(message) }
        sink.stop(milliseconds: finishMilliseconds)
        return 0
    }

    /// Waits for the next message; `nil`: there is no more.
    private static func next(_ input: inout StreamInput) -> StreamMessage? {
        var buffer = [UInt8](repeating: 0, count: bufferBytes)
        while true {
            if let body = input.next() {
                guard let message = StreamCoding.message(body) else { continue }
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
        // The daemon reads all the time; if it does not, it is gone.
        _ = kernel_write(descriptor, StreamCoding.encoded(report).span)
    }
}
