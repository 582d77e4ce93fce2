import Testing

@testable import sfu_bench

@Suite struct ReportTests {
    @Test func `a Prometheus histogram is summed over its labels`() throws {
        let page = """
            # TYPE delay_seconds histogram
            delay_seconds_bucket{worker="0",le="0.001"} 3
            delay_seconds_bucket{worker="0",le="+Inf"} 4
            delay_seconds_bucket{worker="1",le="0.001"} 6
            delay_seconds_bucket{worker="1",le="+Inf"} 6
            delay_seconds_count{worker="0"} 4
            """
        let found = try #require(Prometheus.histogram("delay_seconds", in: page))
        #expect(found == DelayBuckets(bounds: [0.001, .infinity], counts: [9, 1]))
        #expect(found.milliseconds(0.5) == 1)
        #expect(Prometheus.histogram("other_seconds", in: page) == nil)
        #expect(Prometheus.value("heap_bytes", in: page + "\nheap_bytes 42\n") == 42)
        #expect(Prometheus.value("heap", in: "heap_bytes 42") == nil)
        let earlier = DelayBuckets(bounds: [0.001, .infinity], counts: [4, 1])
        #expect(found.since(earlier).counts == [5, 0])
    }

    @Test func `a fit finds the exponent that made its points`() throws {
        let points = [1.0, 2, 4, 8].map { (x: $0, y: 3 * $0 * $0) }
        let exponent = try #require(LeastSquares.exponent(points))
        #expect(abs(exponent - 2) < 1e-9)
        #expect(LeastSquares.exponent([(x: 1, y: 1)]) == nil)
        let line = try #require(LeastSquares.line([(x: 0, y: 5), (x: 10, y: 25)]))
        #expect(line.start == 5 && line.slope == 2)
    }

    struct Slope: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Value of each of thirty points.
        var value: @Sendable (Int) -> Double
        var median: ClosedRange<Double>
        /// Whether the confidence interval contains 0.
        var mayBeNone: Bool
    }

    static let slopes = [
        Slope(
            testDescription: "a line",
            value: { 7 + 3 * Double($0) },
            median: 3...3,
            mayBeNone: false
        ),
        Slope(
            testDescription: "a line with a stray",
            value: { $0 == 29 ? 1e9 : 3 * Double($0) },
            median: 3...3,
            mayBeNone: false
        ),
        Slope(testDescription: "the same", value: { _ in 5 }, median: 0...0, mayBeNone: true),
        Slope(
            testDescription: "one step early on",
            value: { $0 < 3 ? 0 : 400 },
            median: 0...0,
            mayBeNone: true
        ),
        Slope(
            testDescription: "up and down",
            value: { $0 % 2 == 0 ? 100 : 0 },
            median: -1...1,
            mayBeNone: true
        ),
        Slope(
            testDescription: "steps without end",
            value: { Double($0 / 5 * 50) },
            median: 9...11,
            mayBeNone: false
        ),
    ]

    @Test(arguments: slopes)
    func `L1 a slope is told from chance`(row: Slope) throws {
        let points = (0..<30).map { (x: Double($0), y: row.value($0)) }
        let slope = try #require(TheilSen(points))
        #expect(row.median.contains(slope.median))
        #expect(slope.low <= slope.median && slope.median <= slope.high)
        #expect((slope.low...slope.high).contains(0) == row.mayBeNone)
        #expect(TheilSen(Array(points.prefix(9))) == nil)
    }

    @Test func `bars are told in words, by medians of the rounds`() throws {
        // sfud, floor-1 and janus by turns; the ratio of the medians would be 1.
        let rounds: [[Double]] = [[12, 10, 50], [22, 20, 60], [12, 12, 50]]
        let outcomes = rounds.flatMap { round in
            zip(["sfud", "floor-1", "janus"], round).map { system, cost in
                var outcome = Outcome("P5", system, size: 100)
                outcome[.cpuMicroseconds] = cost
                return outcome
            }
        }
        let rows = Targets(findings: Findings(outcomes: outcomes)).rows
        #expect(
            BarTable(rows).text == """
                reached  P5, 100      CPU a packet, gcm: 12.00 µs (12.00 to 22.00); \
                floor-1: 12.00 µs (10.00 to 20.00), 1.10 ×; \
                janus: 50.00 µs (50.00 to 60.00), 0.24 ×. \
                To reach: ≤ 1.15 × floor-1, ≤ 0.3 × janus
                1 of 1 bars reached
                """
        )
    }

    struct Bar: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var scenario: String
        var note = ""
        var size: Int
        var figures: [Figure: Double]
        /// Verdicts of the rows with a bar.
        var isMet: [Bool]
    }

    static let bars = [
        Bar(
            testDescription: "a slow meeting",
            scenario: "P3",
            size: 25,
            figures: [.delay50: 0.3, .delay99: 1.6],
            isMet: [false]
        ),
        Bar(
            testDescription: "a meeting of another size",
            scenario: "P3",
            size: 10,
            figures: [.delay50: 0.3, .delay99: 1.6],
            isMet: []
        ),
        Bar(
            testDescription: "a storm",
            scenario: "P10",
            note: "all at once",
            size: 500,
            figures: [.joinsPerCPUSecond: 1_001, .joinsPerSecond: 499, .delay99: 4],
            isMet: [true, false, true]
        ),
        Bar(
            testDescription: "an idle crowd",
            scenario: "P14",
            note: "connected",
            size: 2_000,
            figures: [.cpuShare: 0.011, .bytesPerViewer: 60_000],
            isMet: [false, true]
        ),
    ]

    @Test(arguments: bars)
    func `each bar is held to its figure`(_ bar: Bar) {
        var outcome = Outcome(bar.scenario, "sfud", size: bar.size)
        outcome.note = bar.note
        outcome.figures = bar.figures
        let rows = Targets(findings: Findings(outcomes: [outcome])).rows
        #expect(rows.compactMap(\.isMet) == bar.isMet)
    }

    @Test func `an outcome is one line of JSON`() {
        var outcome = Outcome("P1", "sfud", size: 10)
        outcome.note = "a \"b\""
        outcome[.loss] = 0.5
        outcome.faults = ["2 duplicates"]
        #expect(
            outcome.json == """
                {"scenario":"P1","system":"sfud","profile":"gcm","note":"a \\"b\\"","workers":1,\
                "size":10,"loss":0.5,"faults":["2 duplicates"],"warnings":[]}
                """
        )
    }

    @Test(arguments: [[0.3, 7.2], [12, 480], [1_999, 3]])
    func `an axis holds its values and has few ticks`(_ values: [Double]) {
        let axis = Axis("x", of: values, from: 0, to: 100)
        for value in values { #expect((0...100).contains(axis.place(value))) }
        #expect((3...11).contains(axis.ticks.count))
        #expect(axis.place(0) == 0)
    }

    struct Line: CustomTestStringConvertible, Sendable {
        var testDescription: String { arguments.joined(separator: " ") }
        var arguments: [String]
        var complaint: String?
    }

    static let lines = [
        Line(arguments: [], complaint: nil),
        Line(arguments: ["P1", "p3", "--viewers", "20"], complaint: nil),
        Line(arguments: ["P6"], complaint: "P6"),
        Line(arguments: ["--viewers", "0"], complaint: "--viewers"),
        Line(arguments: ["--profile"], complaint: "--profile"),
        Line(arguments: ["--against", "nobody"], complaint: "nobody"),
        Line(arguments: ["--fast"], complaint: "--fast"),
    ]

    @Test(arguments: lines)
    func `a command line is taken or refused by name`(_ line: Line) {
        var complaint: String?
        do throws(UsageError) {
            _ = try Options(line.arguments)
        } catch {
            complaint = error.message
        }
        #expect((complaint == nil) == (line.complaint == nil))
        if let expected = line.complaint { #expect(complaint?.contains(expected) == true) }
    }
}
