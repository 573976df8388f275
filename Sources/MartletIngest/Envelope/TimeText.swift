/// Dates and times as text that SQLite's functions understand: `2026-01-31`, `2026-01-31 23:59:58` and `23:59:58`, with
/// three, six or nine more digits where they are not all zero.
///
/// Years before 0 or after 9999 have a sign, which SQLite's functions don't understand.
enum TimeText {
    enum Unit: Int64, Sendable {
        case milliseconds = 1000
        case microseconds = 1_000_000
        case nanoseconds = 1_000_000_000
    }

    private static let secondsOfDay: Int64 = 86_400

    /// - Parameter days: since 1970.
    static func date(days: Int32) -> String { date(Int64(days)) }

    /// - Parameter count: units since 1970.
    static func timestamp(_ count: Int64, _ unit: Unit) -> String {
        // What the connector for PostgreSQL writes for an infinite time, whatever the unit.
        if count == 9_223_372_036_825_200_000 { return "infinity" }
        if count == -9_223_372_036_832_400_000 { return "-infinity" }
        let (seconds, fraction) = floorDivision(count, unit.rawValue)
        return timestamp(seconds: seconds, nanoseconds: fraction * (Unit.nanoseconds.rawValue / unit.rawValue))
    }

    /// - Parameter seconds: since 1970.
    static func timestamp(seconds: Int64, nanoseconds: Int64) -> String {
        let (days, time) = floorDivision(seconds, secondsOfDay)
        return "\(date(days)) \(clock(seconds: time, nanoseconds: nanoseconds))"
    }

    /// - Parameter count: units since midnight. A time of MySQL may be negative, or have more than 24 hours.
    static func time(_ count: Int64, _ unit: Unit) -> String {
        let magnitude = count.magnitude
        let perSecond = UInt64(unit.rawValue)
        let nanoseconds = Int64(magnitude % perSecond) * (Unit.nanoseconds.rawValue / unit.rawValue)
        let text = clock(seconds: Int64(magnitude / perSecond), nanoseconds: nanoseconds)
        return count < 0 ? "-\(text)" : text
    }

    /// The civil date of a day, by years that begin in March, so that the leap day is their last.
    private static func date(_ days: Int64) -> String {
        let daysOf400Years: Int64 = 146_097
        let (era, dayOfEra) = floorDivision(days + 719_468, daysOf400Years)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let sign = year < 0 ? "-" : year > 9999 ? "+" : ""
        return "\(sign)\(padded(Int64(year.magnitude), 4))-\(padded(month, 2))-\(padded(day, 2))"
    }

    /// Returns the days from 1970 to a date. Nil if there is no such date.
    static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
        guard (1...12).contains(month), day >= 1 else { return nil }
        let yearFromMarch = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = floorDivision(yearFromMarch, 400)
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        // A day that the month does not have is one of another month.
        return date(days).hasSuffix("-\(padded(month, 2))-\(padded(day, 2))") ? days : nil
    }

    private static func clock(seconds: Int64, nanoseconds: Int64) -> String {
        let text = "\(padded(seconds / 3600, 2)):\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2))"
        if nanoseconds == 0 { return text }
        var digits = nanoseconds
        var width = 9
        while digits % 1000 == 0 {
            digits /= 1000
            width -= 3
        }
        return "\(text).\(padded(digits, width))"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }

    private static func floorDivision(_ a: Int64, _ b: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = a.quotientAndRemainder(dividingBy: b)
        return remainder < 0 ? (quotient - 1, remainder + b) : (quotient, remainder)
    }
}
