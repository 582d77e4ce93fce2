extension FixedWidthInteger {
    /// Creates the integer nearest to `value` towards zero, clamped to the type's range; 0 for NaN.
    ///
    /// Measured rates and times are converted here, so no quotient of them can trap the worker.
    @inline(__always)
    init(saturating value: Double) {
        let nearest: Self = value.isNaN ? 0 : value < 0 ? .min : .max
        self = Self(exactly: value.rounded(.towardZero)) ?? nearest
    }
}
