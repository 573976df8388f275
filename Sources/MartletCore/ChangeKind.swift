/// The kind of a row's change.
public enum ChangeKind: String, Sendable, Codable, CaseIterable {
    case insert
    case update
    case delete
}

extension ChangeKind {
    /// The number in the log's column `k`.
    package var code: Int64 {
        switch self {
        case .insert: 1
        case .update: 2
        case .delete: 3
        }
    }

    package init?(code: Int64) {
        switch code {
        case 1: self = .insert
        case 2: self = .update
        case 3: self = .delete
        default: return nil
        }
    }

    /// Kinds of log rows that are not changes themselves.
    package enum Mark {
        /// Closes the transaction that the preceding changes belong to.
        package static let transaction: Int64 = 0
        /// Holds the old values of the update that follows.
        package static let before: Int64 = 4
    }
}
