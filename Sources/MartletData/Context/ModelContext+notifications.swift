import MartletStore

extension ModelContext {
    /// Posted before each save, with the context as the object and without `userInfo`.
    public static let willSave = Notification.Name("SwiftData.ModelContext.willSave")
    /// Posted after each save that succeeded, with the context as the object, on the thread that saved. `userInfo` has
    /// the keys of ``NotificationKey``.
    public static let didSave = Notification.Name("SwiftData.ModelContext.didSave")

    /// The keys of ``didSave``'s `userInfo`, where each stands under its raw value and under itself.
    ///
    /// The identifiers are a `[PersistentIdentifier]` in ascending order under the raw value, and a
    /// `Set<PersistentIdentifier>` under the key itself.
    public enum NotificationKey: String, Hashable, Sendable {
        /// Of the models that were saved for the first time, under their lasting identifiers.
        case insertedIdentifiers
        /// Of the models that were changed.
        case updatedIdentifiers
        /// Of the models that were deleted.
        case deletedIdentifiers
        /// Always empty after a save.
        case invalidatedAllIdentifiers
        /// The state that the context works on, which is what was just saved: the same as `historyTokens`.
        case queryGeneration
        /// The token of the transaction that the save became (a ``DefaultHistoryToken`` for tables); a dictionary of
        /// them by store identifier where it became several, in several stores. Absent where no row was changed, and
        /// where a store of one's own told none.
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
