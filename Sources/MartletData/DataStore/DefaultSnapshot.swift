import MartletStore

/// A snapshot of any model.
///
/// Encoded as an object with the identifier and the model's properties, each in the same way as its own type: an
/// encoder's strategies for dates and data apply. Relationships are encoded as identifiers.
public struct DefaultSnapshot: DataStoreSnapshot {
    let record: SnapshotRecord

    public var persistentIdentifier: PersistentIdentifier { record.identifier }

    init(_ record: SnapshotRecord) { self.record = record }

    public init(
        from backingData: any BackingData,
        relatedBackingDatas: inout [PersistentIdentifier: any BackingData]
    ) {
        record = backingData._$contents.record
    }

    public func copy(
        persistentIdentifier: PersistentIdentifier,
        remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]? = nil
    ) -> DefaultSnapshot {
        var copy = record
        copy.identifier = persistentIdentifier
        if let remappedIdentifiers {
            copy.links = copy.links.mapValues { targets in targets.map { remappedIdentifiers[$0] ?? $0 } }
        }
        return DefaultSnapshot(copy)
    }
}

extension DefaultSnapshot: Codable {
    private typealias Key = DataStoreSnapshotCodingKey

    private static func entity(_ name: String) throws -> EntityLayout {
        guard let entity = SnapshotEntities.entity(named: name) else {
            throw SwiftDataError.invalidSchema.because(
                "A snapshot belongs to \(name), which no open container has. Open the container before reading it."
            )
        }
        return entity
    }

    /// - Throws: ``SwiftDataError/invalidSchema`` if no container of this process has the model; the errors of the
    ///   decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let identifier = try container.decode(PersistentIdentifier.self, forKey: .persistentIdentifier)
        var record = SnapshotRecord(identifier: identifier)
        for slot in try Self.entity(identifier.entityName).slots {
            let key = Key.modeledProperty(slot.name)
            switch slot.kind {
            case .attribute where slot.column == nil: continue
            case .attribute(_, let type):
                if let value = try container.contains(key) ? type.coder.decode(container, key) : type.defaultValue?() {
                    record.values[slot.name] = value
                } else if type.isOptional {
                    record.values[slot.name] = .null
                } else {
                    throw DecodingError.keyNotFound(
                        key, .init(codingPath: container.codingPath, debugDescription: "The property has no default."))
                }
            case .relationship(let link) where link.isToMany:
                record.links[slot.name] = try container.decodeIfPresent([PersistentIdentifier].self, forKey: key) ?? []
            case .relationship:
                record.links[slot.name] =
                    try container.decodeIfPresent(PersistentIdentifier.self, forKey: key)
                    .map { [$0] } ?? []
            }
        }
        self.record = record
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(persistentIdentifier, forKey: .persistentIdentifier)
        for slot in try Self.entity(persistentIdentifier.entityName).slots {
            let key = Key.modeledProperty(slot.name)
            switch slot.kind {
            case .attribute where slot.column == nil: continue
            case .attribute(_, let type): try type.coder.encode(record.values[slot.name] ?? .null, &container, key)
            case .relationship(let link) where link.isToMany:
                try container.encode(record.links[slot.name] ?? [], forKey: key)
            case .relationship: try container.encodeIfPresent(record.links[slot.name]?.first, forKey: key)
            }
        }
    }
}
