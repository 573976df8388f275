import MartletStore

/// The values for a column: few, where they should collide; values at the edges of the table's constraints; and extreme
/// ones.
struct ValuePool {
    private let column: TableProfile.Column
    private let table: TableProfile
    private let features: Set<SchemaFeature>

    init(_ column: TableProfile.Column, _ table: TableProfile, _ features: Set<SchemaFeature>) {
        self.column = column
        self.table = table
        self.features = features
    }

    static func isText(_ type: String) -> Bool { ["CHAR", "CLOB", "TEXT"].contains(where: type.contains) }

    func value(_ random: SplitMix) -> String {
        var random = random
        let mayBeNull = !column.isNotNull && (!column.isKey || features.contains(.nullKeys))
        if mayBeNull, column.name != table.integerKey, random.once(in: 6) { return "NULL" }
        if features.contains(.extremeValues), random.once(in: column.isNarrow ? 30 : 8) { return extreme(&random) }
        if column.name == table.integerKey { return "\(1 + random.below(6))" }
        let type = column.type
        if Self.isText(type) { return text(&random) }
        if type.contains("INT") { return number(&random) }
        if ["REAL", "FLOA", "DOUB"].contains(where: type.contains) {
            return random.once(in: 3) ? "\(number(&random)).5" : number(&random)
        }
        if type.contains("BLOB") {
            return random.once(in: 6) ? number(&random) : "x'\(random.pick(["", "00", "01", "0100", "ff"]))'"
        }
        // An unusual type, or none: equal values may be stored in several ways.
        switch random.below(8) {
        case 0...2: return number(&random)
        // Zeros of either sign are equal in SQLite.
        case 3: return random.once(in: 3) ? random.pick(["0.0", "-0.0"]) : number(&random) + ".0"
        case 4: return "'\(number(&random))'"
        case 5: return "x'0\(random.below(4))'"
        case 6: return number(&random) + ".5"
        default: return text(&random)
        }
    }

    private func number(_ random: inout SplitMix) -> String {
        if !table.numbers.isEmpty, random.once(in: 3) {
            return "\(random.pick(table.numbers) - 1 + random.below(3))"
        }
        if random.once(in: 12) { return "-\(1 + random.below(3))" }
        return column.isNarrow || random.once(in: 2) ? "\(random.below(5))" : "\(random.below(1000))"
    }

    private func text(_ random: inout SplitMix) -> String {
        if !table.texts.isEmpty, random.once(in: 4) { return varied(random.pick(table.texts), &random) }
        if column.isNarrow || random.once(in: 2) { return varied("'k\(random.below(4))'", &random) }
        return random.once(in: 6) ? "'🐦\(random.below(100))'" : "'t\(random.below(1000))'"
    }

    /// The same text in other case, or with trailing spaces.
    private func varied(_ literal: String, _ random: inout SplitMix) -> String {
        var literal = literal
        if random.once(in: table.foldsCase ? 2 : 10) {
            literal = random.once(in: 2) ? literal.uppercased() : literal.lowercased()
        }
        if random.once(in: table.foldsBlanks ? 3 : 25), literal.hasSuffix("'") {
            literal = literal.dropLast() + (random.once(in: 2) ? " '" : "  '")
        }
        return literal
    }

    private func extreme(_ random: inout SplitMix) -> String {
        let type = column.type
        if Self.isText(type) {
            return random.pick([
                "''", "' '", "CAST(x'6100' AS TEXT)", "CAST(x'ff61' AS TEXT)", "'e' || char(769)", "'é'",
                "char(65279) || 'k1'",
                "hex(zeroblob(700))", "'\u{1F469}\u{200D}\u{1F680}'", "1", "-0.0",
            ])
        }
        // Not for an integer key: nothing could be inserted after the greatest one.
        if column.name == table.integerKey { return random.pick(["-1", "0", "4294967296", "-9223372036854775808"]) }
        if type.contains("INT") {
            return random.pick([
                "9223372036854775807", "-9223372036854775808", "9007199254740993", "0", "-1", "'1'", "2.0",
            ])
        }
        if ["REAL", "FLOA", "DOUB"].contains(where: type.contains) {
            return random.pick(["-0.0", "9e999", "-9e999", "1e300", "5e-324", "0.1", "9007199254740993", "'1e2'"])
        }
        return random.pick([
            "x''", "x'00ff00'", "zeroblob(900)", "9e999", "-0.0", "9223372036854775807", "''", "CAST(x'ff' AS TEXT)",
            "0x10",
        ])
    }
}
