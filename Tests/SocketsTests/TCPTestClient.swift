import CKernel
import Glibc
import Testing
import WorkerInterface

extension TCPConnectionsTests {
    /// Client of a listening worker.
    struct Client: ~Copyable {
        let descriptor: Int32

        init(to address: Address) throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            try #require(descriptor >= 0)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = address.port.bigEndian
            name.sin_addr.s_addr = (address.ipv4 ?? 0).bigEndian
            let result = unsafe withUnsafePointer(to: &name) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { rebound in
                    unsafe Glibc.connect(
                        descriptor,
                        rebound,
                        socklen_t(MemoryLayout<sockaddr_in>.size)
                    )
                }
            }
            try #require(result == 0)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        }

        deinit { kernel_close(descriptor) }

        func send(_ datagrams: [UInt8]...) {
            StreamPair.write(datagrams.flatMap(StreamPair.framed), to: descriptor)
        }

        /// Whether the other side has closed the connection; discards the data before that.
        var isEnded: Bool {
            _ = StreamPair.take(from: descriptor)
            var byte = [0 as UInt8]
            var places = byte.mutableSpan
            let count = kernel_read(descriptor, &places)
            return count == 0 || count == Int64(-ECONNRESET)
        }
    }
}
