/// The set of columns that an update changed, as the triggers record it: an integer with a bit for each slot while the
/// slots fit, else text with a `0` or `1` for each slot from the first.
package struct ChangeMask {
    /// The highest slot that fits the integer form.
    static let integerSlots = 62

    /// Returns the SQL that computes a mask in a trigger. A column without a condition counts as unchanged.
    static func expression(_ columns: [(slot: Int, condition: String?)]) -> String {
        guard let highest = columns.map(\.slot).max() else { return "0" }
        let bySlot = Dictionary(uniqueKeysWithValues: columns.compactMap { c in c.condition.map { (c.slot, $0) } })
        if highest <= integerSlots {
            let bits = bySlot.sorted { $0.key < $1.key }.map { "(\($0.value)) * \(UInt64(1) << UInt64($0.key - 1))" }
            return bits.isEmpty ? "0" : bits.balanced(" + ")
        }
        return (1...highest).map { bySlot[$0].map { "(\($0))" } ?? "0" }.balanced(" || ")
    }

    private let value: Value

    package init(_ value: Value) { self.value = value }

    package func contains(slot: Int) -> Bool {
        switch value {
        case .integer(let bits): slot <= Self.integerSlots && bits & (1 << Int64(slot - 1)) != 0
        case .text(let digits):
            digits.utf8.dropFirst(slot - 1).first == UInt8(ascii: "1")
        default: false
        }
    }

    /// Returns the mask of these slots, in the form that the triggers of a table with `highest` slots use.
    package static func value(slots: [Int], highest: Int) -> Value {
        if highest <= integerSlots {
            return .integer(slots.reduce(0) { $0 | (1 << Int64($1 - 1)) })
        }
        let set = Set(slots)
        return .text(String((1...highest).map { set.contains($0) ? "1" : "0" }))
    }
}
