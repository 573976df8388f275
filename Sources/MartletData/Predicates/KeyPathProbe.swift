import MartletStore

/// Follows a key path through stand-in models, to find out which relationships it follows, and at which attribute it
/// ends.
///
/// A key path itself only reveals whether it is equal to another one.
final class KeyPathProbe {
    private(set) var links: [Link] = []
    private(set) var slot: Int?
    /// The part of the attribute to which the key path leads: a stored property of a value that is stored as JSON.
    private(set) var part: StoredPart?
    private let description: String
    /// Kept until the key path has been followed.
    private var models: [any PersistentModel] = []

    /// Nil for a key path that ends elsewhere, or if no value can be made up for an attribute on the way.
    init?<T: PersistentModel>(_ keyPath: PartialKeyPath<T>, from entity: EntityLayout) {
        description = "\(keyPath)"
        guard let model = model(of: entity) as? T else { return nil }
        let value = model[keyPath: keyPath]
        guard let slot, let end = models.last, let attribute = end._$backing.layout?.slots[slot].keyPath,
            let own = Self.value(attribute, of: end)
        else { return nil }
        let stored = Self.stored(own)
        if Self.stored(value) == stored, stored != nil || type(of: own) == type(of: value) { return }
        // A value computed from the attribute may sort differently.
        guard let part = Self.part(of: keyPath, in: own) else { return nil }
        self.part = part
    }

    /// Uses the printed form of a key path, which ends with the names of the stored properties on its way: `<computed
    /// 0x1 (Home)>.city`.
    private static func part(of keyPath: AnyKeyPath, in value: Any) -> StoredPart? {
        let rest = "\(keyPath)".components(separatedBy: ")>").last ?? ""
        guard rest.split(separator: ".").count == 1, rest.first == ".", !(value is any StorableAttribute),
            !(value is any OptionalType), StoredPart.isPlain(type(of: keyPath).valueType)
        else { return nil }
        return try? StoredPart(keyPath, of: type(of: value))
    }

    private static func value<M: PersistentModel>(_ keyPath: AnyKeyPath, of model: M) -> Any? {
        (keyPath as? PartialKeyPath<M>).map { model[keyPath: $0] }
    }

    private static func stored(_ value: Any) -> Value? {
        if let optional = value as? any OptionalType { return optional.anyValue.flatMap(stored) }
        if let value = value as? any StorableAttribute { return value.storedValue }
        if let value = value as? any RawRepresentable { return stored(value.rawValue) }
        return nil
    }

    func note(_ slot: Int) { self.slot = slot }

    func follow(_ link: Link) -> (any PersistentModel)? {
        guard let model = model(of: link.destination) else { return nil }
        links.append(link)
        return model
    }

    /// Returns whether a key path may lead through a slot. Its printed form shows the types on the way; if it doesn't,
    /// every slot may be.
    private func isOnTheWay(_ slot: EntityLayout.Slot) -> Bool {
        guard case .attribute(_, let type) = slot.kind, description.contains("<computed ") else { return true }
        return ["(\(type.valueType))", "(Optional<\(type.valueType)>)"].contains(where: description.contains)
    }

    private func model(of entity: EntityLayout) -> (any PersistentModel)? {
        // A getter must return something, so an attribute without a placeholder must not be on the way.
        guard entity.slots.allSatisfy({ $0.hasPlaceholder || !isOnTheWay($0) }) else { return nil }
        let model = ModelContext.absentModel(of: entity, in: nil)
        models.append(model)
        for (slot, kind) in entity.slots.map(\.kind).enumerated() {
            guard case .attribute(_, let type) = kind else { continue }
            let unlikely: [Value] = [.text("Probe Ä 7919"), .integer(7_919), .real(7_919.5)]
            if let value = unlikely.first(where: type.accepts) { model._$backing.values[slot] = value }
        }
        model._$backing.unread = Set(entity.slots.indices)
        model._$backing.probe = self
        return model
    }
}
