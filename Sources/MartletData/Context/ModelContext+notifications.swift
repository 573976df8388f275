import MartletStore

extension ModelContext {
    /// Posted before each save, with the context as the object and without `userInfo`.
    public static let willSave = Notification.Name("SwiftData.ModelContext.willSave")
    /// Posted after each successful save, with the context as the object, on the thread that saved. `userInfo` has the
    /// keys of ``NotificationKey``.
    public static let didSave = Notification.Name("SwiftData.ModelContext.didSave")

    /// The keys of ``didSave``'s `userInfo`. Each is present twice: as its raw value and as itself.
    ///
    /// The identifiers are a `[PersistentIdentifier]` in ascending order under the raw value, and a
    /// `Set<PersistentIdentifier>` under the key itself.
    public enum NotificationKey: String, Hashable, Sendable {
        /// The models that were saved for the first time, with their permanent identifiers.
        case insertedIdentifiers
        /// The models that were changed.
        case updatedIdentifiers
        /// The models that were deleted.
        case deletedIdentifiers
        /// Always empty after a save.
        case invalidatedAllIdentifiers
        /// The state that the context works on, which is the one just saved: the same as `historyTokens`.
        case queryGeneration
        /// The token of the save's transaction (a ``DefaultHistoryToken`` for tables), or a dictionary of tokens by
        /// store identifier if the save produced several, in several stores. Absent if no row was changed, and if a
        /// custom store returned no token.
        case historyTokens
    }

    func notifySaved(_ saved: Saved) {
        let identifiers = saved.plans.map(\.identifiers)
        func all(_ part: (SavePlan.Identifiers) -> Set<PersistentIdentifier>) -> Set<PersistentIdentifier> {
            identifiers.count == 1 ? part(identifiers[0]) : identifiers.reduce(into: []) { $0.formUnion(part($1)) }
        }
        var info: [NotificationKey: Any] = [
            .insertedIdentifiers: all(\.inserted), .updatedIdentifiers: all(\.updated),
            .deletedIdentifiers: all(\.deleted), .invalidatedAllIdentifiers: Set<PersistentIdentifier>(),
        ]
        if let only = saved.tokens.first?.value {
            let value: Any = saved.tokens.count == 1 ? only : saved.tokens
            info[.historyTokens] = value
            info[.queryGeneration] = value
        }
        var userInfo: [AnyHashable: Any] = [:]
        for (key, value) in info {
            userInfo[key] = value
            userInfo[key.rawValue] = (value as? Set<PersistentIdentifier>).map { $0.sorted() as Any } ?? value
        }
        NotificationCenter.default.post(name: Self.didSave, object: self, userInfo: userInfo)
    }
}
