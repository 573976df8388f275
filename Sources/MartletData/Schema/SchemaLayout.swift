/// A resolved schema: every entity with its slots, every table with its columns, every relationship with its other end.
///
/// Created once for a container, and immutable afterwards.
final class SchemaLayout: @unchecked Sendable {  // safe because nothing is written after `init`
    private(set) var entities: [EntityLayout] = []
    private(set) var tables: [TableLayout] = []
    private var byType: [ObjectIdentifier: EntityLayout] = [:]
    private var byName: [String: EntityLayout] = [:]
    /// Join tables, each with its name and the two ends of its relationship.
    private(set) var joins: [(name: String, first: Link, second: Link)] = []

    /// The required to-one relationships, by the table that they reference.
    private(set) var requiredReferences: [String: [RequiredReference]] = [:]

    private let unit: Int
    /// True if each end of a relationship is stored by its own model, and not in tables.
    let keepsLists: Bool

    /// - Parameter unit: the index of the container's store that the layout is for.
    init(_ schema: Schema, unit: Int = 0, keepsLists: Bool = false) throws {
        self.unit = unit
        self.keepsLists = keepsLists
        for model in schema.models { try add(model) }
        var linker = RelationshipLinker(layout: self)
        try linker.link()
        joins = linker.joins
        for entity in entities { entity.finish() }
        for entity in entities { try ConstraintCollector(entity: entity).collect() }
        for entity in entities { addRequiredReferences(of: entity) }
    }

    private func addRequiredReferences(of owner: EntityLayout) {
        for slot in owner.slots {
            guard let link = slot.link, link.source === owner, !link.isToMany, !link.isOptional, slot.keyPath != nil,
                let column = slot.column
            else { continue }
            requiredReferences[link.destination.table.name, default: []].append(
                RequiredReference(owner: owner, property: link.name, column: owner.table.columns[column].name))
        }
    }

    subscript(_ type: any PersistentModel.Type) -> EntityLayout? { byType[ObjectIdentifier(type)] }
    subscript(named name: String) -> EntityLayout? { byName[name] }

    func entity(_ type: any PersistentModel.Type) throws -> EntityLayout {
        guard let entity = self[type] else {
            throw SwiftDataError.invalidSchema.because(
                """
                \(Schema.entityName(for: type)) is not in the container's schema. Add it where the container is \
                created.
                """
            )
        }
        return entity
    }

    // MARK: Entities and attributes

    @discardableResult
    private func add(_ type: any PersistentModel.Type) throws -> EntityLayout {
        if let known = self[type] { return known }
        let superlayout = try Self.superclass(of: type).map { try add($0) }
        let name = Schema.entityName(for: type)
        guard byName[name] == nil else {
            throw SwiftDataError.invalidSchema.because("Two models are called \(name).")
        }
        let table: TableLayout
        if let superlayout {
            table = superlayout.table
            table.hasTypeColumn = true
        } else {
            table = TableLayout(name: name)
            tables.append(table)
        }
        let entity = EntityLayout(name: name, type: type, table: table, superlayout: superlayout, unit: unit)
        entities.append(entity)
        byType[ObjectIdentifier(type)] = entity
        byName[name] = entity
        superlayout?.sublayouts.append(entity)
        try addSlots(entity)
        return entity
    }

    private static func superclass(of type: any PersistentModel.Type) throws -> (any PersistentModel.Type)? {
        guard let superclass = _getSuperclass(type) else { return nil }
        guard let model = superclass as? any PersistentModel.Type else {
            throw SwiftDataError.invalidSchema.because(
                """
                \(superclass), the superclass of \(Schema.entityName(for: type)), is not a model: its properties would \
                be lost. Mark it with @Model, or make it a protocol.
                """
            )
        }
        return model
    }

    private func addSlots(_ entity: EntityLayout) throws {
        let inherited = entity.superlayout?.slots.count ?? 0
        for (index, property) in entity.type.schemaMetadata.enumerated() {
            guard !property.name.hasPrefix("_") else {
                throw SwiftDataError.invalidSchema.because(
                    "\(entity.name).\(property.name): the name of a stored property must not begin with an underscore.")
            }
            switch property.kind {
            case .attribute(let attribute, let type):
                guard !attribute.isEphemeral else {
                    guard type.isOptional || type.defaultValue != nil else {
                        throw SwiftDataError.invalidSchema.because(
                            """
                            \(entity.name).\(property.name) is ephemeral, so a fetched model has no value for it. Give \
                            it a default value, or make it optional.
                            """
                        )
                    }
                    entity.slots.append(
                        .init(name: property.name, keyPath: property.keyPath, kind: .attribute(attribute, type)))
                    continue
                }
                let column =
                    index < inherited
                    ? entity.superlayout?.slots[index].column
                    : try addColumn(
                        entity, property.name,
                        .init(
                            name: "", declaration: type.columnType, originalName: attribute.formerName,
                            defaultValue: type.defaultValue?(),
                            isNotNull: !type.isOptional && entity.superlayout == nil, valueType: type.valueType,
                            accepts: type.accepts))
                if attribute.preservesValue { entity.table.preservesValues = true }
                entity.slots.append(
                    .init(
                        name: property.name, keyPath: property.keyPath, kind: .attribute(attribute, type),
                        column: column))
            case .relationship(let options, let type):
                let link =
                    index < inherited
                    ? entity.superlayout?.slots[index].link
                    : Link(
                        name: property.name, isToMany: type.isToMany, isOptional: type.isOptional, options: options,
                        source: entity, destination: try add(type.destination))
                guard let link else { continue }
                entity.slots.append(.init(name: property.name, keyPath: property.keyPath, kind: .relationship(link)))
            case .unknown(let reason):
                throw SwiftDataError.invalidSchema.because("\(entity.name).\(property.name): \(reason)")
            }
        }
    }

    /// Adds a column for a property. If a sibling class already has a column of that name, the name is prefixed with
    /// the class.
    func addColumn(_ entity: EntityLayout, _ property: String, _ column: TableLayout.Column) throws -> Int {
        var column = column
        func isTaken(_ name: String) -> Bool {
            entity.table.columns.contains { $0.name.lowercased() == name.lowercased() }
        }
        column.property = property
        column.owner = entity.name
        column.name = isTaken(property) && entity.superlayout != nil ? "\(entity.name)_\(property)" : property
        guard !isTaken(column.name) else {
            throw SwiftDataError.invalidSchema.because(
                """
                \(entity.name) has two properties that differ in case only: \(property). SQLite treats them as one \
                column.
                """
            )
        }
        entity.table.columns.append(column)
        return entity.table.columns.count - 1
    }
}

/// A required to-one relationship, with its column.
struct RequiredReference {
    let owner: EntityLayout
    let property: String
    let column: String
}
