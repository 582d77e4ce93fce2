/// The SFUs that can be measured.
enum Adapters {
    /// Those besides sfud, by the names that `--against` takes.
    static let rivals: [String] = []

    static func rival(_ name: String) -> (any Adapter)? {
        switch name {
        default: nil
        }
    }
}
