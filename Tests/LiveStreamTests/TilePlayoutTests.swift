import LiveStream
import RTP
import Testing

@Suite struct TilePlayoutTests {
    private func instant(_ milliseconds: Int64) -> Instant {
        Instant(nanoseconds: milliseconds * 1_000_000)
    }

    /// Returns the pictures displayed at `now` with a delay of 400 ms after their capture.
    private func shown(_ stage: inout TilePlayout<String>, _ now: Int64) -> [String?] {
        stage.pictures(until: instant(now - 400), at: instant(now))
    }

    @Test func `pictures are shown when their time has come, and stay`() {
        var stage = TilePlayout<String>()
        stage.set([1], at: instant(0))
        stage.add("a", of: 1, at: instant(10))
        stage.add("b", of: 1, at: instant(40))
        #expect(shown(&stage, 400) == [nil])
        #expect(shown(&stage, 410) == ["a"])
        #expect(shown(&stage, 430) == ["a"])
        #expect(shown(&stage, 5_000) == ["b"])
    }

    @Test func `a participant leaving the stage stays until the next picture is there`() {
        var stage = TilePlayout<String>()
        stage.set([1], at: instant(0))
        stage.add("a", of: 1, at: instant(0))
        #expect(shown(&stage, 400) == ["a"])
        stage.leave(1)
        stage.set([2], at: instant(500))
        #expect(shown(&stage, 600) == ["a"])
        stage.add("b", of: 2, at: instant(650))
        #expect(shown(&stage, 1_049) == ["a"])
        #expect(shown(&stage, 1_050) == ["b"])
    }

    @Test func `a participant leaving the stage stays two seconds at most`() {
        var stage = TilePlayout<String>()
        stage.set([1], at: instant(0))
        stage.add("a", of: 1, at: instant(0))
        #expect(shown(&stage, 400) == ["a"])
        stage.set([2], at: instant(500))
        #expect(shown(&stage, 2_499) == ["a"])
        #expect(shown(&stage, 2_500) == [nil])
    }

    @Test func `E-3 a muted participant disappears at once`() {
        var stage = TilePlayout<String>()
        stage.set([1, 2], at: instant(0))
        stage.add("a", of: 1, at: instant(0))
        stage.add("b", of: 2, at: instant(0))
        stage.add("a2", of: 1, at: instant(100))
        #expect(shown(&stage, 400) == ["a", "b"])
        stage.forget(1)
        #expect(shown(&stage, 500) == [nil, "b"])
    }

    @Test func `a new size is shown at once, and no old size after it`() {
        var stage = TilePlayout<String>()
        stage.set([1], at: instant(0))
        stage.add("old", of: 1, at: instant(0))
        stage.add("old too", of: 1, at: instant(100))
        #expect(shown(&stage, 400) == ["old"])
        stage.set([1, 2], at: instant(410))
        stage.replace("new", of: 1)
        #expect(shown(&stage, 420) == ["new", nil])
        #expect(shown(&stage, 600) == ["new", nil])
        stage.add("next", of: 1, at: instant(400))
        #expect(shown(&stage, 800) == ["next", nil])
    }

    @Test func `pictures that wait have a limit`() {
        var stage = TilePlayout<String>()
        for number in 0..<200 { stage.add("\(number)", of: 1, at: instant(Int64(number))) }
        stage.set([1], at: instant(0))
        let first = 200 - TilePlayout<String>.waitingLimit
        #expect(shown(&stage, 400 + Int64(first)) == ["\(first)"])
    }

    @Test(arguments: 0...9)
    func `tiles lie in the picture, and not on one another`(_ count: Int) {
        for (width, height) in [(1_280, 720), (160, 160), (320, 1_920), (854, 480)] {
            let tiles = StreamGrid.tiles(count, width: width, height: height)
            #expect(tiles.count == count)
            for (index, tile) in tiles.enumerated() {
                #expect([tile.x, tile.y, tile.width, tile.height].allSatisfy { $0 % 2 == 0 })
                #expect(tile.x >= 0 && tile.x + tile.width <= width && tile.width >= 50)
                #expect(tile.y >= 0 && tile.y + tile.height <= height && tile.height >= 50)
                #expect(tile.width == tiles[0].width && tile.height == tiles[0].height)
                for other in tiles[..<index] {
                    let isBeside =
                        tile.x >= other.x + other.width || other.x >= tile.x + tile.width
                    #expect(isBeside || tile.y >= other.y + other.height)
                }
            }
        }
    }

    @Test func `one tile fills the picture, two are side by side`() {
        let one = StreamGrid.tiles(1, width: 640, height: 360)
        #expect(one == [StreamTile(x: 0, y: 0, width: 640, height: 360)])
        let two = StreamGrid.tiles(2, width: 640, height: 360)
        #expect(two.map(\.x) == [0, 320] && two.map(\.y) == [90, 90])
    }
}
