import Foundation

/// Reads the SQL of a capture trigger after SQLite has rewritten it.
enum TriggerReader {
    /// Returns the column names in the insert trigger, by slot. ALTER TABLE RENAME COLUMN rewrites them, so the trigger
    /// tells which column is which.
    static func columnNames(_ sql: String) -> [Int: String] {
        guard let open = sql.range(of: "INSERT INTO \(InternalName.log)(e, r, k, t", options: [.backwards, .literal]),
            let values = sql.range(of: ")\nVALUES (", options: .literal, range: open.upperBound..<sql.endIndex)
        else { return [:] }
        let slots = sql[open.upperBound..<values.lowerBound].split(separator: ",").compactMap {
            Int($0.trimmingCharacters(in: .whitespaces).dropFirst())
        }
        let names = quotedNames(after: "NEW.\"", in: Array(sql.unicodeScalars[values.upperBound...]))
        // The first one is the integer key, if there is one.
        return Dictionary(zip(slots, names.suffix(slots.count)), uniquingKeysWith: { first, _ in first })
    }

    private static func quotedNames(after mark: String, in text: [Unicode.Scalar]) -> [String] {
        let mark = Array(mark.unicodeScalars)
        var names: [String] = []
        var index = 0
        while index + mark.count <= text.count {
            guard text[index..<(index + mark.count)].elementsEqual(mark) else {
                index += 1
                continue
            }
            index += mark.count
            var name = String.UnicodeScalarView()
            while index < text.count {
                if text[index] == "\"" {
                    guard index + 1 < text.count, text[index + 1] == "\"" else { break }
                    index += 1
                }
                name.append(text[index])
                index += 1
            }
            names.append(String(name))
        }
        return names
    }
}
