import Testing

@testable import SFU

/// New viewers of streams with all codings and layers, checked by a decoder model.
struct WarmNewcomerTests {
    @Test(arguments: Coding.allCases)
    func `a newcomer's stream is whole from the first packet on`(coding: Coding) throws {
        var driver = try LayerDriver(coding, .clean, seed: 11)
        for _ in 0..<40 { driver.step() }
        var pictures = 0
        let newcomers = 60
        for index in 0..<newcomers {
            var (hasPicture, former) = driver.replaceViewer(of: index % LayerDriver.viewers)
            if hasPicture { pictures += 1 }
            former.finish()
            #expect(former.violations.isEmpty)
            for _ in 0..<7 { driver.step(aims: index % 2 == 0) }
        }
        driver.finish()
        for model in driver.models {
            #expect(model.violations.isEmpty)
            #expect(model.frames > 10)
        }
        #expect(pictures * 4 > newcomers * 3, "\(pictures) of \(newcomers)")
    }

    /// Late and lost packets delay a warm picture; a newcomer then gets a keyframe as ever.
    @Test(arguments: Coding.allCases, [LayerDriver.Network.disordered, .lossy])
    func `newcomers have a picture at once on bad networks too, more often than not`(
        coding: Coding,
        network: LayerDriver.Network
    ) throws {
        var driver = try LayerDriver(coding, network, seed: 12)
        for _ in 0..<40 { driver.step() }
        var pictures = 0
        var frames = 0
        for index in 0..<60 {
            var (hasPicture, former) = driver.replaceViewer(of: index % LayerDriver.viewers)
            if hasPicture { pictures += 1 }
            former.finish()
            frames += former.frames
            for _ in 0..<7 { driver.step(aims: index % 2 == 0) }
        }
        #expect(pictures > 30)
        #expect(frames > 600)
    }
}
