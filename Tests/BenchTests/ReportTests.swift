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

    @Test func `an outcome is one line of JSON`() {
        var outcome = Outcome("P1", "sfud", size: 10)
        outcome.note = "a \"b\""
        outcome[.loss] = 0.5
        outcome.faults = ["2 duplicates"]
        #expect(
            outcome.json == """
                {"scenario":"P1","system":"sfud","profile":"gcm","note":"a \\"b\\"","workers":1,\
                "size":10,"round":1,"loss":0.5,"faults":["2 duplicates"],"warnings":[]}
                """
        )
    }

    /// Three rounds of P5: in the second, something slowed everything down.
    private static var rounds: Findings {
        let costs = [
            ("sfud", [6.0, 12, 7]), ("floor-1", [5.0, 10, 5]), ("janus", [20.0, 40, 30]),
        ]
        var outcomes: [Outcome] = []
        for (system, values) in costs {
            for (index, value) in values.enumerated() {
                var outcome = Outcome("P5", system, size: 100)
                outcome.round = index + 1
                outcome[.cpuMicroseconds] = value
                outcomes.append(outcome)
            }
        }
        return Findings(outcomes: outcomes)
    }

    @Test func `systems are compared round by round, and the median counts`() throws {
        let findings = Self.rounds
        let own = try #require(findings.spread(.cpuMicroseconds, .pairs, "sfud", size: 100))
        #expect(own.text("%.1f") == "7.0 (6.0 to 12.0)")
        let ratio = try #require(
            findings.ratio(.cpuMicroseconds, .pairs, to: "floor-1", size: 100, profile: .gcm)
        )
        #expect(ratio.text("%.2f") == "1.20 (1.20 to 1.40)")
        #expect(findings.spread(.cpuMicroseconds, .pairs, "sfud", size: 99) == nil)
        #expect(Spread([2, 2])?.text("%.0f", by: 10) == "20")
    }

    @Test func `the summary says of each bar whether it was reached`() throws {
        let row = try #require(Targets(findings: Self.rounds).rows.first)
        #expect(row.others["floor-1"] == "5.00 µs; 1.20 (1.20 to 1.40) ×")
        #expect(row.bar == "≤ 1.15 × floor-1, ≤ 0.3 × janus" && row.isMet == false)
        #expect(
            Report.summary(of: Self.rounds) == """

                Bars, by the median of 3 rounds (least to most):
                  MISSED   P5, 100: CPU a packet, gcm: 7.00 (6.00 to 12.00) µs; \
                floor-1 5.00 µs; 1.20 (1.20 to 1.40) ×; janus 30.00 µs; 0.30 (0.23 to 0.30) ×; \
                to reach: ≤ 1.15 × floor-1, ≤ 0.3 × janus
                0 of 1 bars reached.

                """
        )
        #expect(Report.summary(of: Findings(outcomes: [])).isEmpty)
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
        Line(arguments: ["--rounds", "20"], complaint: nil),
        Line(arguments: ["--rounds", "21"], complaint: "--rounds"),
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
