import Synchronization

/// The progress of `attach` with the rows that already exist.
public struct AttachProgress: Sendable, Equatable {
    public enum Step: Sendable {
        /// Each row gets an entry in the side table of stable IDs.
        case naming
        /// Rows are logged to the history.
        case logging
    }

    public var table: String
    public var step: Step
    /// The number of finished rows, out of `rowCount` rows in the table.
    public var rows: Int
    public var rowCount: Int
}

/// Counts the rows of each pass, and reports progress.
final class RowTally: Sendable {
    /// The number of rows between two reports.
    private static let interval = 1000
    private let report: @Sendable (AttachProgress) -> Void
    private let state = Mutex<AttachProgress?>(nil)

    init(_ report: @escaping @Sendable (AttachProgress) -> Void) { self.report = report }

    func begin(_ step: AttachProgress.Step, _ table: String, rowCount: Int) {
        let progress = AttachProgress(table: table, step: step, rows: 0, rowCount: rowCount)
        state.withLock { $0 = progress }
        report(progress)
    }

    func count() {
        let progress: AttachProgress? = state.withLock { state in
            guard var progress = state else { return nil }
            progress.rows += 1
            state = progress
            return progress
        }
        if let progress, progress.rows.isMultiple(of: Self.interval) { report(progress) }
    }
}
