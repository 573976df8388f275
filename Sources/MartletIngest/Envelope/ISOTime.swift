/// Dates and times as Java writes them, such as `2026-01-31T23:59:58.123456Z`.
enum ISOTime {
    /// Returns a date and time in the form of SQLite's functions, `2026-01-31 23:59:58.123456`.
    ///
    /// If the text has a zone, the time is that of UTC. Nil if the text is no date and time.
    static func timestamp(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 19, let days = date(bytes[..<10]), bytes[10] == UInt8(ascii: "T") || bytes[10] == 0x20,
            let time = clock(bytes[11..<19])
        else { return nil }
        var rest = bytes[19...]
        guard let nanoseconds = fraction(&rest), let offset = offset(rest) else { return nil }
        return TimeText.timestamp(seconds: days * 86_400 + time - offset, nanoseconds: nanoseconds)
    }

    /// Returns a date or a time of UTC without its zone, `2026-01-31` for `2026-01-31Z`. Other text stays as it is.
    static func withoutZone(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard bytes.last == UInt8(ascii: "Z") else { return text }
        let isDate = bytes.count == 11 && date(bytes[..<10]) != nil
        var rest = bytes.dropFirst(8).dropLast()
        let isTime = bytes.count > 8 && clock(bytes[..<8]) != nil && fraction(&rest) != nil && rest.isEmpty
        return isDate || isTime ? String(text.dropLast()) : text
    }

    /// Returns the days since 1970 of `2026-01-31`.
    private static func date(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let parts = bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [4, 2, 2], let year = number(parts[0]), let month = number(parts[1]),
            let day = number(parts[2])
        else { return nil }
        return TimeText.days(year, month, day)
    }

    /// Returns the seconds since midnight of `23:59:58`.
    private static func clock(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let parts = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [2, 2, 2], let hour = number(parts[0]), let minute = number(parts[1]),
            let second = number(parts[2]), hour < 24, minute < 60, second < 60
        else { return nil }
        return (hour * 60 + minute) * 60 + second
    }

    /// Removes the fraction of a second, if there is one, and returns it in nanoseconds. Nil if it has no digits, or
    /// more than nine.
    private static func fraction(_ bytes: inout ArraySlice<UInt8>) -> Int64? {
        guard bytes.first == UInt8(ascii: ".") else { return 0 }
        let digits = bytes.dropFirst().prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        guard (1...9).contains(digits.count), var nanoseconds = number(digits) else { return nil }
        for _ in digits.count..<9 { nanoseconds *= 10 }
        bytes = bytes[digits.endIndex...]
        return nanoseconds
    }

    /// Returns the seconds that a zone is ahead of UTC. None is UTC.
    private static func offset(_ bytes: ArraySlice<UInt8>) -> Int64? {
        if bytes.isEmpty || bytes.elementsEqual("Z".utf8) { return 0 }
        guard bytes.count == 6, let first = bytes.first, first == UInt8(ascii: "+") || first == UInt8(ascii: "-")
        else { return nil }
        let parts = bytes.dropFirst().split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [2, 2], let hours = number(parts[0]), let minutes = number(parts[1]) else {
            return nil
        }
        return (first == UInt8(ascii: "-") ? -60 : 60) * (hours * 60 + minutes)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.reduce(0) { number, digit in
            guard let number, UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
            return number * 10 + Int64(digit - UInt8(ascii: "0"))
        }
    }
}
