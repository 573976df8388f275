import MartletStore

/// What went wrong with models.
///
/// Two errors are equal when they are of one kind; ``message`` says more. Errors of the file itself (busy, full,
/// damaged) come as the store's own `StoreError`.
///
/// `catch` also takes a name that says more or less than the kind: a store of a newer version is ``incompatibleStore``,
/// ``backwardMigration`` and ``loadIssueModelContainer``.
public struct SwiftDataError: Error, Hashable, Sendable, CustomStringConvertible {
    private enum Kind: String, Sendable {
        case unsupportedPredicate, unsupportedSortDescriptor, unsupportedKeyPath, historyTokenExpired
        case invalidSchema, incompatibleStore, missingMigration, modelValidationFailure, deleteDenied
        case modelNotFound, corruptValue, unencodableValue, saveNotAllowed, modelOfAnotherContext, configuration
        case invalidTransactionFetchRequest, migrationFailed, mutatedWhileEnumerating
        case loadIssueModelContainer, missingModelContext, backwardMigration, unknownSchema, unknownDataStoreSchema
        case duplicateConfiguration, configurationFileNameContainsInvalidCharacters, configurationFileNameTooLong
        case configurationSchemaNotFoundInContainerSchema
        case includePendingChangesWithBatchSize, sortingPendingChangesWithIdentifiers
    }

    private let kind: Kind
    /// What says more than the kind.
    private let closer: Kind?
    /// What is wrong, and what to do about it. Never holds values of models.
    public let message: String
    /// What a closure of the app threw, where that is what went wrong.
    public let underlyingError: (any Error)?

    private init(
        _ kind: Kind, _ message: String = "", _ underlyingError: (any Error)? = nil, closer: Kind? = nil
    ) {
        self.kind = kind
        self.closer = closer
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
    /// A file holds no schema, or a container was to be made for a schema without models.
    public static let unknownSchema = SwiftDataError(.unknownSchema)
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
    /// A store of one's own was asked for a model that isn't there.
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

    static let unreadable = unencodableValue.because("Its init(from:) does not read what its encode(to:) writes.")

    // MARK: Names that say more or less

    /// For `catch`: a container could not be opened because of what is in its file. True of ``incompatibleStore``,
    /// ``missingMigration`` and ``migrationFailed``, and of a `StoreError` that says that the file is damaged, is no
    /// store, or is of a newer version. Not of a file that is busy or may not be written: what is in it is in order.
    public static let loadIssueModelContainer = SwiftDataError(.loadIssueModelContainer)
    /// For `catch`: the store is of a newer version than the models.
    public static let backwardMigration = SwiftDataError(.backwardMigration)
    /// For `catch`: the store is of a version that the migration plan doesn't know, or isn't what the plan says of that
    /// version.
    public static let unknownDataStoreSchema = SwiftDataError(.unknownDataStoreSchema)
    /// For `catch`: two configurations of a container have one name or one file.
    public static let duplicateConfiguration = SwiftDataError(.duplicateConfiguration)
    /// For `catch`: a configuration's name can't be the name of a file.
    public static let configurationFileNameContainsInvalidCharacters = SwiftDataError(
        .configurationFileNameContainsInvalidCharacters)
    /// For `catch`: the name of a configuration's file is too long for the file systems of Linux.
    public static let configurationFileNameTooLong = SwiftDataError(.configurationFileNameTooLong)
    /// For `catch`: a configuration names a model that the container's schema hasn't.
    public static let configurationSchemaNotFoundInContainerSchema = SwiftDataError(
        .configurationSchemaNotFoundInContainerSchema)

    // MARK: Never thrown

    /// Never thrown here: what is asked of a model without a context is answered from memory.
    public static let missingModelContext = SwiftDataError(.missingModelContext)
    /// Never thrown here: a fetch in batches takes pending changes into account.
    public static let includePendingChangesWithBatchSize = SwiftDataError(.includePendingChangesWithBatchSize)
    /// Never thrown here: identifiers are sorted with pending changes, too.
    public static let sortingPendingChangesWithIdentifiers = SwiftDataError(.sortingPendingChangesWithIdentifiers)

    /// The same error with a message.
    ///
    /// - Parameter closer: what says more than this kind.
    func because(
        _ message: String, underlying error: (any Error)? = nil, closer: SwiftDataError? = nil
    ) -> SwiftDataError {
        SwiftDataError(kind, message, error ?? underlyingError, closer: closer?.kind)
    }

    /// True of what ``loadIssueModelContainer`` names.
    private static func isLoadIssue(_ error: any Error) -> Bool {
        if let error = error as? StoreError { return [.corrupt, .notAStore, .newerVersion].contains(error.code) }
        let kind = (error as? SwiftDataError)?.kind
        return kind == .incompatibleStore || kind == .missingMigration || kind == .migrationFailed
    }

    public static func == (a: SwiftDataError, b: SwiftDataError) -> Bool { a.kind == b.kind }
    public func hash(into hasher: inout Hasher) { hasher.combine(kind) }
    /// For `catch SwiftDataError.historyTokenExpired`.
    public static func ~= (kind: SwiftDataError, error: any Error) -> Bool {
        if kind.kind == .loadIssueModelContainer, isLoadIssue(error) { return true }
        guard let error = error as? SwiftDataError else { return false }
        return error.kind == kind.kind || error.closer == kind.kind
    }
    public var description: String { message.isEmpty ? kind.rawValue : "\(kind.rawValue): \(message)" }
}
