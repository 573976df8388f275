/// Integer keys that nodes give to rows on their own.
enum RowNumber {
    /// The highest number of another node's row that a row is given here, too. SQLite counts on from the highest one in
    /// a table, so that a number near the end of the range would leave programs none for new rows. Numbers made from
    /// times (64 bits, of which 41 or 42 are a time) are below it.
    static let highestTakenOver: Int64 = 1 << 62

    /// The number, where a row may have it that another node has numbered so.
    static func takenOver(_ number: Int64) -> Int64? { number <= highestTakenOver ? number : nil }
}
