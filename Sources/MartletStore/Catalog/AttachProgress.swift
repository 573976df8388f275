import Synchronization

/// How far `attach` has come with the rows that are in a table already.
public struct AttachProgress: Sendable, Equatable {
    public enum Step: Sendable {
        /// Each row gets an entry among the stable IDs.
        case naming
        /// Rows are put into the history.
        case logging
    }

    public var table: String
    public var step: Step
    /// Rows that are done, of all in the table.
    public var rows: Int
    public var rowCount: Int
}

/// Counts the rows of one pass after the other, for whoever wants to be told.
final class RowTally: Sendable {
    /// Rows between two reports.
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
