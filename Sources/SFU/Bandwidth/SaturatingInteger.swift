extension FixedWidthInteger {
    /// The integer towards zero from `value`, or the nearest that there is; 0 for no number.
    ///
    /// Measured rates and times end here: no quotient of them may stop the worker.
    @inline(__always)
    init(saturating value: Double) {
        let nearest: Self = value.isNaN ? 0 : value < 0 ? .min : .max
        self = Self(exactly: value.rounded(.towardZero)) ?? nearest
    }
}
