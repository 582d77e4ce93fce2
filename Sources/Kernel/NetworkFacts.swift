package import CKernel

/// Addresses, sockets and listeners of this network namespace, as the kernel tells them.
package enum NetworkFacts {
    /// Returns the addresses of all interfaces.
    package static func interfaces() throws(SystemError) -> [kernel_interface] {
        try all(kernel_interface(), "the interfaces' addresses") { found, capacity in
            unsafe kernel_interface_addresses(&found, capacity)
        }
    }

    /// Returns all bound UDP and listening TCP sockets.
    ///
    /// - Throws: `SystemError`, for example without the kernel's `udp_diag`.
    package static func boundSockets() throws(SystemError) -> [kernel_bound_socket] {
        try all(kernel_bound_socket(), "the sockets") { found, capacity in
            unsafe kernel_bound_sockets(&found, capacity)
        }
    }

    /// Returns the process that listens at a Unix-domain socket.
    package static func listener(at path: String) throws(SystemError) -> Int {
        var credentials = kernel_credentials()
        let result = unsafe kernel_unix_listener(path, &credentials)
        _ = try SystemError.check(result, path)
        return Int(credentials.pid)
    }

    /// Calls `fill` again with more room until all entries fit.
    private static func all<Entry>(
        _ empty: Entry,
        _ operation: String,
        _ fill: (inout [Entry], Int32) -> Int32
    ) throws(SystemError) -> [Entry] {
        var capacity = 64
        while true {
            var found = [Entry](repeating: empty, count: capacity)
            let count = Int(try SystemError.check(fill(&found, Int32(capacity)), operation))
            if count <= capacity { return Array(found.prefix(count)) }
            capacity = count + 64
        }
    }
}
