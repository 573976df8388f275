extension Duration {
    /// Some 30,000 years, in milliseconds.
    package static let maxMilliseconds: Int64 = 1_000_000_000_000_000

    /// The whole milliseconds, limited to ``maxMilliseconds`` either way, so that they can be added to any time of day.
    package var wholeMilliseconds: Int64 {
        let bound = Double(Self.maxMilliseconds)
        return Int64(max(-bound, min(bound, self / .milliseconds(1))))
    }
}
