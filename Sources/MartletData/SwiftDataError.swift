/// What went wrong with models.
///
/// Two errors are equal when they are of one kind; ``message`` says more. Errors of the file itself (busy, full, damaged) come as
/// the store's own `StoreError`.
public struct SwiftDataError: Error, Hashable, Sendable, CustomStringConvertible {
    private enum Kind: String, Sendable {
        case unsupportedPredicate, unsupportedSortDescriptor, unsupportedKeyPath, historyTokenExpired
        case invalidSchema, incompatibleStore, missingMigration, modelValidationFailure, deleteDenied
        case modelNotFound, corruptValue, unencodableValue, saveNotAllowed, modelOfAnotherContext, configuration
        case invalidTransactionFetchRequest, migrationFailed, mutatedWhileEnumerating
    }

    private let kind: Kind
    /// What is wrong, and what to do about it. Never holds values of models.
    public let message: String
    /// What a closure of the app threw, where that is what went wrong.
    public let underlyingError: (any Error)?

    private init(_ kind: Kind, _ message: String = "", _ underlyingError: (any Error)? = nil) {
        self.kind = kind
        self.message = message
        self.underlyingError = underlyingError
    }

    /// The predicate, or a part of it, has no counterpart in SQL.
    public static let unsupportedPredicate = SwiftDataError(.unsupportedPredicate)
    /// The sort descriptor has no counterpart in SQL.
    public static let unsupportedSortDescriptor = SwiftDataError(.unsupportedSortDescriptor)
    /// The key path names no stored property.
    public static let unsupportedKeyPath = SwiftDataError(.unsupportedKeyPath)
    /// The history that a token names has been deleted, or is of another store.
    public static let historyTokenExpired = SwiftDataError(.historyTokenExpired)
    /// No store of the container keeps a history of such transactions.
    public static let invalidTransactionFetchRequest = SwiftDataError(.invalidTransactionFetchRequest)
    /// The models contradict each other.
    public static let invalidSchema = SwiftDataError(.invalidSchema)
    /// The store holds models of another shape, and nothing says how to migrate them, or it is of a newer version.
    public static let incompatibleStore = SwiftDataError(.incompatibleStore)
    /// The plan has no stage for a change that can't be made by itself.
    public static let missingMigration = SwiftDataError(.missingMigration)
    /// A model breaks a rule of its own schema.
    public static let modelValidationFailure = SwiftDataError(.modelValidationFailure)
    /// A delete rule forbids deleting the model.
    public static let deleteDenied = SwiftDataError(.deleteDenied)
    /// The row of a model that was to be updated is gone.
    public static let modelNotFound = SwiftDataError(.modelNotFound)
    /// A row holds a value that its attribute's type can't represent.
    public static let corruptValue = SwiftDataError(.corruptValue)
    /// An attribute's value can't be encoded.
    public static let unencodableValue = SwiftDataError(.unencodableValue)
    /// The configuration allows no saving.
    public static let saveNotAllowed = SwiftDataError(.saveNotAllowed)
    /// The model belongs to another context.
    public static let modelOfAnotherContext = SwiftDataError(.modelOfAnotherContext)
    /// The container's configurations can't be used as they are.
    public static let configuration = SwiftDataError(.configuration)

    /// A closure of a custom stage threw; see ``underlyingError``. The store is as it was.
    public static let migrationFailed = SwiftDataError(.migrationFailed)
    /// The closure of an enumeration left changes behind that it may not leave.
    public static let mutatedWhileEnumerating = SwiftDataError(.mutatedWhileEnumerating)

    /// The same error with a message.
    func because(_ message: String, underlying error: (any Error)? = nil) -> SwiftDataError {
        SwiftDataError(kind, message, error ?? underlyingError)
    }

    public static func == (a: SwiftDataError, b: SwiftDataError) -> Bool { a.kind == b.kind }
    public func hash(into hasher: inout Hasher) { hasher.combine(kind) }
    /// For `catch SwiftDataError.historyTokenExpired`.
    public static func ~= (kind: SwiftDataError, error: any Error) -> Bool { (error as? SwiftDataError) == kind }
    public var description: String { message.isEmpty ? kind.rawValue : "\(kind.rawValue): \(message)" }
}
