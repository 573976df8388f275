extension EntityColumn {
    /// The integer key that SQLite takes a value of a foreign key for: that of the target has integer affinity, so
    /// `'1'` is 1.
    package func referredRow(_ value: Value) -> Int64? {
        switch value {
        case .integer(let number): return number
        case .text(let text):
            // As `holding(_:)` writes it, and so as rows are found by it.
            guard takesText, let number = Int64(text), String(number) == text else { return nil }
            return number
        default: return nil
        }
    }

    /// The number of a row as the column holds it.
    package func holding(_ row: Int64) -> Value { takesText ? .text("\(row)") : .integer(row) }

    private var takesText: Bool { !keepsTextAsItIs && affinity == .text }
}
