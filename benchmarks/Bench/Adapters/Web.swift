import Foundation

/// Minimal HTTP client for `/metrics`.
enum Web {
    /// Returns the body of `path` on 127.0.0.1.
    ///
    /// - Throws: `AdapterError` if there is no answer.
    static func get(_ path: String, port: UInt16) throws(AdapterError) -> String {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw AdapterError("no TCP socket: errno \(errno)") }
        let stream = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw AdapterError("port \(port): errno \(errno)") }
        let request = "GET \(path) HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        do {
            try stream.write(contentsOf: Data(request.utf8))
            let answer = String(decoding: try stream.readToEnd() ?? Data(), as: UTF8.self)
            guard let body = answer.range(of: "\r\n\r\n") else {
                throw AdapterError("port \(port) answers no HTTP")
            }
            return String(answer[body.upperBound...])
        } catch {
            throw AdapterError("port \(port): \(error)")
        }
    }
}

/// Parser of the Prometheus text format (version 0.0.4).
enum Prometheus {
    /// Returns the value of the sample of that name without labels; `nil` if absent.
    static func value(_ name: String, in page: String) -> Double? {
        page.split(separator: "\n").lazy.filter { $0.hasPrefix("\(name) ") }
            .compactMap { Double($0.dropFirst(name.count + 1)) }.first
    }

    /// Returns the histogram of that name, summed over all labels; `nil` if absent.
    static func histogram(_ name: String, in page: String) -> DelayBuckets? {
        var within: [Double: Double] = [:]
        for line in page.split(separator: "\n") where line.hasPrefix("\(name)_bucket{") {
            guard let start = line.range(of: "le=\""),
                let value = line.split(separator: " ").last.flatMap({ Double($0) })
            else { continue }
            let text = line[start.upperBound...].prefix { $0 != "\"" }
            guard let bound = text == "+Inf" ? .infinity : Double(text) else { continue }
            within[bound, default: 0] += value
        }
        guard !within.isEmpty else { return nil }
        let bounds = within.keys.sorted()
        var before = 0.0
        let counts = bounds.map { bound in
            let total = within[bound] ?? before
            defer { before = total }
            return UInt64(max(0, total - before))
        }
        return DelayBuckets(bounds: bounds, counts: counts)
    }
}
