/// Integer keys that each node assigns to rows.
package enum RowNumber {
    /// The highest number of a remote row that a row here takes over. SQLite continues from the highest number in a
    /// table, so a number near the end of the range would leave programs none for new rows. Numbers made from times (64
    /// bits, of which 41 or 42 are a time) are below it.
    package static let highestTakenOver: Int64 = 1 << 62

    /// Returns the number if a row here may take it over from another node, else nil.
    package static func takenOver(_ number: Int64) -> Int64? { number <= highestTakenOver ? number : nil }
}
