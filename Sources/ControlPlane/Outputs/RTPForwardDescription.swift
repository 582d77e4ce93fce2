import WorkerInterface

/// Session description for the receiver of an RTP forward, as SDP (RFC 8866).
enum RTPForwardDescription {
    /// Returns the SDP; `name` is the session's name, `number` its unique session id.
    static func text(of output: RTPForwardTarget, name: String, number: OutputID) -> String {
        let origin = output.lines.first.map { connection($0.address) } ?? "IN IP4 127.0.0.1"
        var lines = ["v=0", "o=- \(number) 1 \(origin)", "s=\(name)", "t=0 0"]
        for line in output.lines {
            let kind = line.kind == .audio ? "audio" : "video"
            lines += [
                "m=\(kind) \(line.address.port) RTP/AVP \(line.payloadType)",
                "c=\(connection(line.address))",
                "a=rtpmap:\(line.payloadType) \(mapping(of: line.codec))",
            ]
            if let parameters = parameters(of: line.codec) {
                lines.append("a=fmtp:\(line.payloadType) \(parameters)")
            }
            // From the perspective of the reader, who receives.
            lines.append("a=recvonly")
        }
        return lines.map { $0 + "\r\n" }.joined()
    }

    private static func connection(_ address: Address) -> String {
        "IN \(address.isIPv6 ? "IP6" : "IP4") \(address.text)"
    }

    private static func mapping(of codec: Codec) -> String {
        switch codec {
        case .opus, .red: "opus/48000/2"
        case .vp8: "VP8/90000"
        case .vp9: "VP9/90000"
        case .h264: "H264/90000"
        case .av1: "AV1/90000"
        }
    }

    /// Format parameters for `a=fmtp`.
    ///
    /// H.264 has its parameter sets in the stream.
    private static func parameters(of codec: Codec) -> String? {
        switch codec {
        case .opus, .red: "sprop-stereo=1"
        case .h264: "packetization-mode=1"
        case .vp8, .vp9, .av1: nil
        }
    }
}
