import Foundation

/// Reads values by their dotted keys. Collects the problems, including keys that nothing has read.
struct KeyReader {
    private let values: [String: Any]
    /// The values that are neither lists nor mappings, as the file has them. To YAML, `0123` is the number 83, and
    /// `1.10` the number 1.1, but a password or a name may be either.
    private let scalars: [String: String]
    /// Keys whose value is a table with keys of the user's choice.
    private var tables: Set<String> = []
    private var known: [String] = []
    private var problems: [String] = []

    /// - Parameter scalars: the values as the file has them, by their dotted keys.
    init(_ top: [String: Any], scalars: [String: String]) {
        var values: [String: Any] = [:]
        Self.flatten(top, prefix: "", into: &values)
        self.values = values
        self.scalars = scalars
    }

    private static func flatten(_ table: [String: Any], prefix: String, into values: inout [String: Any]) {
        for (key, value) in table {
            values[prefix + key] = value
            if let inner = value as? [String: Any] { flatten(inner, prefix: prefix + key + ".", into: &values) }
        }
    }

    mutating func problem(_ text: String) { problems.append(text) }

    private mutating func value(_ key: String) -> Any? {
        known.append(key)
        guard let value = values[key], !(value is NSNull) else { return nil }
        return value
    }

    mutating func text(_ key: String) -> String? {
        guard let value = value(key) else { return nil }
        if let text = plainText(value, key) { return text }
        problems.append("\(key): must be text")
        return nil
    }

    /// Returns the text of a value as the file has it. Nil for a list or a mapping.
    private func plainText(_ value: Any, _ key: String) -> String? {
        if let text = value as? String { return text }
        guard value is Int || value is Double || value is Bool || value is Date else { return nil }
        return scalars[key] ?? "\(value)"
    }

    mutating func texts(_ key: String) -> [String]? {
        guard let value = value(key) else { return nil }
        if let text = value as? String {
            return text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        if let list = value as? [Any], let texts = list as? [String] { return texts }
        problems.append("\(key): must be a list of strings")
        return nil
    }

    mutating func table(_ key: String) -> [String: String]? {
        tables.insert(key)
        guard let value = value(key) else { return nil }
        guard let table = value as? [String: Any] else {
            problems.append("\(key): must have keys and values")
            return nil
        }
        var texts: [String: String] = [:]
        for (name, value) in table.sorted(by: { $0.key < $1.key }) where !(value is NSNull) {
            if let flag = value as? Bool {
                // YAML has more words for these than librdkafka.
                texts[name] = "\(flag)"
            } else if let text = plainText(value, "\(key).\(name)") {
                texts[name] = text
            } else {
                problems.append("\(key).\(name): must be text or a number")
            }
        }
        return texts
    }

    /// Reads a list of groups of keys. Each group has a reader of its own.
    mutating func groups<T>(_ key: String, _ read: (inout KeyReader) -> T) -> [T]? {
        guard let value = value(key) else { return nil }
        guard let list = value as? [Any], let groups = list as? [[String: Any]] else {
            problems.append("\(key): must be a list of groups of keys")
            return nil
        }
        return groups.enumerated().map { index, group in
            let place = "\(key)[\(index)]."
            let scalars = scalars.filter { $0.key.hasPrefix(place) }
            var reader = KeyReader(
                group,
                scalars: Dictionary(
                    scalars.map { (String($0.key.dropFirst(place.count)), $0.value) },
                    uniquingKeysWith: { first, _ in first }))
            let result = read(&reader)
            problems += reader.finish().map { place + $0 }
            return result
        }
    }

    /// Returns true if the key has a table as its value, even an empty one.
    func hasTable(_ key: String) -> Bool { values[key] is [String: Any] }

    mutating func integer(_ key: String) -> Int? {
        guard let value = value(key) else { return nil }
        if let number = value as? Int { return number }
        problems.append("\(key): \(value) is not a whole number")
        return nil
    }

    /// Reads a bound that has a default. Without the key, the default applies. `never`, or a null under the key itself,
    /// means that there is no bound: null meant that before there was a default. (A null group has no keys.)
    mutating func bound<T>(_ key: String, else preset: T?, _ read: (inout KeyReader, String) -> T?) -> T? {
        known.append(key)
        guard let value = values[key] else { return preset }
        if value is NSNull || (value as? String) == "never" { return nil }
        return read(&self, key)
    }

    mutating func bool(_ key: String) -> Bool? {
        guard let value = value(key) else { return nil }
        if let flag = value as? Bool { return flag }
        problems.append("\(key): \(value) must be true or false")
        return nil
    }

    enum FlagOrTime {
        case flag(Bool)
        case time(Date)
    }

    mutating func time(_ key: String) -> FlagOrTime? {
        guard let value = value(key) else { return nil }
        if let flag = value as? Bool { return .flag(flag) }
        if let date = value as? Date { return .time(date) }
        if let text = value as? String, let date = try? Date(text, strategy: .iso8601) { return .time(date) }
        problems.append("\(key): \(value) must be true, false or a time such as 2026-01-31T12:00:00Z")
        return nil
    }

    /// Returns the contents of a file that the configuration names under this key, without line ends around them.
    mutating func contents(of file: String, _ key: String, _ readFile: (String) throws -> String) -> String? {
        do {
            return try readFile(file).trimmingCharacters(in: .newlines)
        } catch {
            problem("\(key): \(file) can't be read")
            return nil
        }
    }

    mutating func duration(_ key: String) -> Duration? {
        guard let value = value(key) else { return nil }
        if let duration = Duration(text: "\(value)") { return duration }
        problems.append("\(key): \(value) is not a duration (a number and a unit: 500ms, 5s, 10m, 12h, 30d)")
        return nil
    }

    mutating func choice<T>(_ key: String, _ all: [T], _ name: (T) -> String) -> T? {
        guard let text = text(key) else { return nil }
        if let found = all.first(where: { name($0) == text }) { return found }
        problems.append("\(key): \(text) must be one of \(all.map(name).joined(separator: ", "))")
        return nil
    }

    /// Returns every problem, including unknown keys.
    func finish() -> [String] {
        let groups = Set(
            known.flatMap { key -> [String] in
                let parts = key.split(separator: ".")
                return (1..<max(1, parts.count)).map { parts.prefix($0).joined(separator: ".") }
            })
        let unknown = values.keys.sorted().filter { key in
            !known.contains(key) && !groups.contains(key) && !tables.contains { key.hasPrefix($0 + ".") }
                // A key inside an unknown group is reported with its group.
                && !values.keys.contains { key.hasPrefix($0 + ".") && !groups.contains($0) && !known.contains($0) }
        }
        return problems
            + unknown.map { key in
                let nearest = (known + groups).min { Self.distance(key, $0) < Self.distance(key, $1) }
                return "\(key): unknown key" + (nearest.map { "; did you mean \($0)?" } ?? "")
            }
            + groups.sorted().filter { values[$0] != nil && !(values[$0] is [String: Any]) && !(values[$0] is NSNull) }
            .map { "\($0): must have keys and values" }
    }

    /// Returns the edit distance: how many letters must be inserted, removed or replaced.
    private static func distance(_ a: String, _ b: String) -> Int {
        let a = Array(a.lowercased())
        let b = Array(b.lowercased())
        var row = Array(0...b.count)
        for (i, x) in a.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, y) in b.enumerated() {
                let replaced = diagonal + (x == y ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[b.count]
    }
}

extension Duration {
    /// Parses a number and a unit: `ms`, `s`, `m`, `h` or `d`. Nil for anything else.
    public init?(text: String) {
        let digits = text.prefix { $0.isNumber || $0 == "." }
        guard let number = Double(digits), number.isFinite else { return nil }
        let seconds: Double
        switch text.dropFirst(digits.count).trimmingCharacters(in: .whitespaces) {
        case "ms": seconds = number / 1000
        case "s": seconds = number
        case "m": seconds = number * 60
        case "h": seconds = number * 3600
        case "d": seconds = number * 86_400
        default: return nil
        }
        guard seconds < 1e12 else { return nil }
        self = .milliseconds(Int64((seconds * 1000).rounded()))
    }
}
