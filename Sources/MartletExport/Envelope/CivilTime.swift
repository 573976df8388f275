/// Dates and times as SQLite's own functions write them: `2026-01-31` and `2026-01-31 23:59:58`, the latter also with
/// three digits of a second's fraction. Any other text is none.
enum CivilTime {
    /// Returns the days since 1970 of a date.
    static func days(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        return bytes.count == 10 ? days(bytes[...]) : nil
    }

    /// Returns the milliseconds since 1970 of a date and time, without a time zone.
    static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 19 || bytes.count == 23, bytes[10] == UInt8(ascii: " "), let days = days(bytes[..<10]),
            let hour = number(bytes[11..<13]), hour < 24, bytes[13] == UInt8(ascii: ":"),
            let minute = number(bytes[14..<16]), minute < 60, bytes[16] == UInt8(ascii: ":"),
            let second = number(bytes[17..<19]), second < 60
        else { return nil }
        var milliseconds: Int64 = 0
        if bytes.count == 23 {
            guard bytes[19] == UInt8(ascii: "."), let fraction = number(bytes[20..<23]) else { return nil }
            milliseconds = fraction
        }
        return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milliseconds
    }

    private static func days(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let dash = UInt8(ascii: "-")
        guard bytes[4] == dash, bytes[7] == dash, let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10]), (1...12).contains(month), day >= 1, day <= length(of: month, year)
        else { return nil }
        // The year begins in March, so that the leap day is its last.
        let shifted = month <= 2 ? year - 1 : year
        let monthOfYear = (month + 9) % 12
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + leapBorrow(shifted)
            + (monthOfYear * 153 + 2) / 5 + day - 1 - 719_468
    }

    /// The division above rounds towards zero, and the year before year 0 is negative.
    private static func leapBorrow(_ year: Int64) -> Int64 { year < 0 ? -1 : 0 }

    private static func length(of month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var number: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return number
    }
}
