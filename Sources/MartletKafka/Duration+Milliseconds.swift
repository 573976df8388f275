extension Duration {
    /// Whole milliseconds, rounded up, and clamped to what librdkafka's `int timeout_ms` can hold.
    var millisecondsClamped: Int32 {
        if self <= .zero { return 0 }
        if self >= .milliseconds(Int32.max) { return Int32.max }
        let (seconds, attoseconds) = components
        return Int32(seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    var millisecondsText: String { "\(millisecondsClamped)" }
}
