/// Loads an SFU as real clients do, and measures what it costs.
@main
struct SFUBench {
    static func main() throws {
        let library = try Library(Library.simulcast + [Library.screen], progress: Progress())
        for s in Library.simulcast + [Library.screen] {
            let r = library.video(s)!
            print(s.name, r.frames.count, r.bytes.count * 8 / 10, r.frames[0].length, r.frames.dropFirst().map(\.length).max()!, r.frames.map(\.length).prefix(40))
        }
        print(library.audio.frames.map(\.length).prefix(100), library.audio.bytes.count)
    }
}
