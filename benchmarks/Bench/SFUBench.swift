/// Loads an SFU as real clients do, and measures what it costs.
@main
struct SFUBench {
    static func main() { print(BenchProfile.allCases.map(\.rawValue)) }
}
