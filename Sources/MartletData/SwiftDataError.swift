import MartletStore

/// An error of the model layer.
///
/// Two errors are equal when they are of the same kind; ``message`` gives the details. Errors of the file itself (busy,
/// full, damaged) are thrown as the store's own `StoreError`.
///
/// `catch` also matches names that are broader or narrower than the kind: a store of a newer version matches
/// ``incompatibleStore``, ``backwardMigration`` and ``loadIssueModelContainer``.
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
    /// A kind that is more specific than `kind`.
    private let closer: Kind?
    /// What is wrong, and what to do about it. Never contains values of models.
    public let message: String
    /// The cause: what one of the app's closures threw, or what a getter met that could not read the store.
    public let underlyingError: (any Error)?

    private init(
        _ kind: Kind, _ message: String = "", _ underlyingError: (any Error)? = nil, closer: Kind? = nil
    ) {
        self.kind = kind
        self.closer = closer
        self.message = message
        self.underlyingError = underlyingError
    }

    /// The predicate, or a part of it, can't be translated to SQL.
    public static let unsupportedPredicate = SwiftDataError(.unsupportedPredicate)
    /// The sort descriptor can't be translated to SQL.
    public static let unsupportedSortDescriptor = SwiftDataError(.unsupportedSortDescriptor)
    /// The key path doesn't lead to a stored property.
    public static let unsupportedKeyPath = SwiftDataError(.unsupportedKeyPath)
    /// The history at the token has been deleted, or the token belongs to another store.
    public static let historyTokenExpired = SwiftDataError(.historyTokenExpired)
    /// No store of the container keeps a history of such transactions.
    public static let invalidTransactionFetchRequest = SwiftDataError(.invalidTransactionFetchRequest)
    /// A file contains no schema, or a container was created for a schema without models.
    public static let unknownSchema = SwiftDataError(.unknownSchema)
    /// The models contradict each other.
    public static let invalidSchema = SwiftDataError(.invalidSchema)
    /// The store's models differ from the container's and there is no way to migrate them, or the store has a newer
    /// version.
    public static let incompatibleStore = SwiftDataError(.incompatibleStore)
    /// The plan has no stage for a change that needs one.
    public static let missingMigration = SwiftDataError(.missingMigration)
    /// A model breaks a rule of its own schema.
    public static let modelValidationFailure = SwiftDataError(.modelValidationFailure)
    /// A delete rule forbids deleting the model.
    public static let deleteDenied = SwiftDataError(.deleteDenied)
    /// A custom store was asked for a model that it doesn't contain, or a model was inserted that a save has deleted.
    public static let modelNotFound = SwiftDataError(.modelNotFound)
    /// A row holds a value that its attribute's type can't represent.
    public static let corruptValue = SwiftDataError(.corruptValue)
    /// An attribute's value can't be encoded.
    public static let unencodableValue = SwiftDataError(.unencodableValue)
    /// The configuration doesn't allow saving, or a getter could not read the store since the last rollback.
    public static let saveNotAllowed = SwiftDataError(.saveNotAllowed)
    /// The model belongs to another context.
    public static let modelOfAnotherContext = SwiftDataError(.modelOfAnotherContext)
    /// The container's configurations can't be used as they are.
    public static let configuration = SwiftDataError(.configuration)

    /// A closure of a custom stage threw; see ``underlyingError``. The store is unchanged.
    public static let migrationFailed = SwiftDataError(.migrationFailed)
    /// The closure of an enumeration left changes that it must not leave.
    public static let mutatedWhileEnumerating = SwiftDataError(.mutatedWhileEnumerating)

    static let unreadable = unencodableValue.because("Its type does not read what is stored for it.")

    // MARK: Broader and narrower names

    /// For `catch`: a container could not be opened because of what is in its file. Matches ``incompatibleStore``,
    /// ``missingMigration`` and ``migrationFailed``, and a `StoreError` that says that the file is damaged, is no
    /// store, or is of a newer version. Doesn't match a file that is busy or not writable: its contents are intact.
    public static let loadIssueModelContainer = SwiftDataError(.loadIssueModelContainer)
    /// For `catch`: the store has a newer version than the models.
    public static let backwardMigration = SwiftDataError(.backwardMigration)
    /// For `catch`: the store has a version that the migration plan doesn't know, or differs from what the plan says
    /// about that version.
    public static let unknownDataStoreSchema = SwiftDataError(.unknownDataStoreSchema)
    /// For `catch`: two configurations of a container have the same name or the same file.
    public static let duplicateConfiguration = SwiftDataError(.duplicateConfiguration)
    /// For `catch`: a configuration's name can't be a file name.
    public static let configurationFileNameContainsInvalidCharacters = SwiftDataError(
        .configurationFileNameContainsInvalidCharacters)
    /// For `catch`: the name of a configuration's file is too long for the file systems of Linux.
    public static let configurationFileNameTooLong = SwiftDataError(.configurationFileNameTooLong)
    /// For `catch`: a configuration lists a model that the container's schema doesn't contain.
    public static let configurationSchemaNotFoundInContainerSchema = SwiftDataError(
        .configurationSchemaNotFoundInContainerSchema)

    // MARK: Never thrown

    /// Never thrown here: a model without a context answers from memory.
    public static let missingModelContext = SwiftDataError(.missingModelContext)
    /// Never thrown here: a fetch in batches takes pending changes into account.
    public static let includePendingChangesWithBatchSize = SwiftDataError(.includePendingChangesWithBatchSize)
    /// Never thrown here: identifiers are sorted with pending changes, too.
    public static let sortingPendingChangesWithIdentifiers = SwiftDataError(.sortingPendingChangesWithIdentifiers)

    /// The same error with a message.
    ///
    /// - Parameter closer: an error whose kind is more specific than this one's.
    func because(
        _ message: String, underlying error: (any Error)? = nil, closer: SwiftDataError? = nil
    ) -> SwiftDataError {
        SwiftDataError(kind, message, error ?? underlyingError, closer: closer?.kind)
    }

    /// Returns true for the errors that ``loadIssueModelContainer`` matches.
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
