/// The SFUs that can be measured.
enum Adapters {
    /// Those besides sfud, by the names that `--against` takes.
    static let rivals = ["janus"]

    static func rival(_ name: String) -> (any Adapter)? {
        switch name {
        case "janus": JanusAdapter()
        default: nil
        }
    }
}
