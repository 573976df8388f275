import MartletStore

/// Values of every kind, as SQL.
enum ValueWriter {
    /// - Parameter isUnique: true if there should be few different values.
    static func literal(_ type: String, isUnique: Bool, _ random: inout SplitMix) -> String {
        if type.contains("INT") { return isUnique ? "\(random.below(8))" : integer(&random) }
        if ["CHAR", "CLOB", "TEXT"].contains(where: type.contains) {
            return isUnique ? "'k\(random.below(6))'" : text(&random)
        }
        if ["REAL", "FLOA", "DOUB"].contains(where: type.contains) { return real(&random) }
        if type.contains("BLOB") { return isUnique ? "x'0\(random.below(8))'" : blob(&random) }
        if isUnique { return "\(random.below(8))" }
        switch random.below(5) {
        case 0: return integer(&random)
        case 1: return real(&random)
        case 2: return text(&random)
        case 3: return blob(&random)
        default: return "NULL"
        }
    }

    private static func integer(_ random: inout SplitMix) -> String {
        random.once(in: 6)
            ? random.pick(["9007199254740993", "-9223372036854775807", "0", "-1"]) : "\(random.below(1000))"
    }

    private static func real(_ random: inout SplitMix) -> String {
        random.once(in: 5)
            ? random.pick(["-0.0", "1e300", "9e999", "0.1", "-9e999"]) : "\(random.below(1000)).\(random.below(10))"
    }

    private static func text(_ random: inout SplitMix) -> String {
        switch random.below(12) {
        case 0: return "'🐦\(random.below(100))'"
        case 1: return "CAST(x'6100\(Hex.text(random.bytes(1).map { $0 & 0x7f }))' AS TEXT)"
        case 2: return "CAST(x'ff\(Hex.text(random.bytes(1)))' AS TEXT)"
        case 3: return "''"
        case 4: return "'\(random.below(100))' || hex(zeroblob(\(400 + random.below(1200))))"
        default: return "'t\(random.below(1000))'"
        }
    }

    private static func blob(_ random: inout SplitMix) -> String { "x'\(Hex.text(random.bytes(random.below(5))))'" }
}
