import MartletStore

/// Follows a key path through models that aren't there, to find out which relationships it goes along, and which
/// attribute it ends at.
///
/// A key path says of itself only whether it is equal to another one.
final class KeyPathProbe {
    private(set) var links: [Link] = []
    private(set) var slot: Int?
    /// What the key path goes on to within the attribute: a stored property of a value that is kept as JSON.
    private(set) var part: StoredPart?
    private let description: String
    /// Held until the key path has been followed.
    private var models: [any PersistentModel] = []

    /// Nil for a key path that ends elsewhere, or where what comes on the way can't be made up.
    init?<T: PersistentModel>(_ keyPath: PartialKeyPath<T>, from entity: EntityLayout) {
        description = "\(keyPath)"
        guard let model = model(of: entity) as? T else { return nil }
        let value = model[keyPath: keyPath]
        guard let slot, let end = models.last, let attribute = end._$backing.layout?.slots[slot].keyPath,
            let own = Self.value(attribute, of: end)
        else { return nil }
        let stored = Self.stored(own)
        if Self.stored(value) == stored, stored != nil || type(of: own) == type(of: value) { return }
        // What is computed from the attribute has another order.
        guard let part = Self.part(of: keyPath, in: own) else { return nil }
        self.part = part
    }

    /// A key path that is printed ends with the names of the stored properties that it goes through: `<computed 0x1
    /// (Home)>.city`.
    private static func part(of keyPath: AnyKeyPath, in value: Any) -> StoredPart? {
        let rest = "\(keyPath)".components(separatedBy: ")>").last ?? ""
        guard rest.split(separator: ".").count == 1, rest.first == ".", !(value is any StorableAttribute),
            !(value is any AnyOptional), StoredPart.isPlain(type(of: keyPath).valueType)
        else { return nil }
        return try? StoredPart(keyPath, of: type(of: value))
    }

    private static func value<M: PersistentModel>(_ keyPath: AnyKeyPath, of model: M) -> Any? {
        (keyPath as? PartialKeyPath<M>).map { model[keyPath: $0] }
    }

    private static func stored(_ value: Any) -> Value? {
        if let optional = value as? any AnyOptional { return optional.anyValue.flatMap(stored) }
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

    /// A key path that is printed shows the types that it goes through. True where it doesn't.
    private func isOnTheWay(_ slot: EntityLayout.Slot) -> Bool {
        guard case .attribute(_, let type) = slot.kind, description.contains("<computed ") else { return true }
        return ["(\(type.valueType))", "(Optional<\(type.valueType)>)"].contains(where: description.contains)
    }

    private func model(of entity: EntityLayout) -> (any PersistentModel)? {
        // A getter must return something: not one that has nothing to return may be on the way.
        guard entity.slots.allSatisfy({ $0.hasPlaceholder || !isOnTheWay($0) }) else { return nil }
        let model = ModelContext.absentModel(of: entity)
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
