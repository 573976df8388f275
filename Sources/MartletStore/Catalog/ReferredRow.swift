extension EntityColumn {
    /// Returns the integer key to which a value of a foreign key refers: the target's key has integer affinity, so
    /// `'1'` is 1.
    package func referredRow(_ value: Value) -> Int64? {
        switch value {
        case .integer(let number): return number
        case .text(let text):
            // Only text as `holding(_:)` writes it, because rows are found by that text.
            guard takesText, let number = Int64(text), String(number) == text else { return nil }
            return number
        default: return nil
        }
    }

    /// Returns the integer key of a row as the column stores it.
    package func holding(_ row: Int64) -> Value { takesText ? .text("\(row)") : .integer(row) }

    private var takesText: Bool { !keepsTextAsItIs && affinity == .text }
}
