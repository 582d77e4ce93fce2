/// The SFUs that can be measured.
enum Adapters {
    /// SFUs other than sfud, by the names that `--against` takes.
    static let rivals = ["janus", "janus-threads"]

    static func rival(_ name: String) -> (any Adapter)? {
        switch name {
        case "janus": JanusAdapter(name: name)
        case "janus-threads": JanusAdapter(name: name, hasThreadPerTransport: true)
        default: nil
        }
    }
}
