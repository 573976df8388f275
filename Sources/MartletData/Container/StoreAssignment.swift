/// Decides which configuration stores which models.
struct StoreAssignment {
    /// A configuration's claim to models.
    struct Claim {
        var name: String
        /// Nil for the configuration that stores the models that no other lists.
        var schema: Schema?
    }

    let schema: Schema
    let claims: [Claim]
    private let layout: SchemaLayout
    private var owners: [ObjectIdentifier: Int] = [:]

    /// The schema of each configuration, in their order.
    ///
    /// - Throws: ``SwiftDataError/configuration`` if a model has no store or two, or a relationship leads from one
    ///   store to another.
    static func schemas(of schema: Schema, _ claims: [Claim]) throws -> [Schema] {
        var assignment = try StoreAssignment(schema, claims)
        return try assignment.run()
    }

    private init(_ schema: Schema, _ claims: [Claim]) throws {
        self.schema = schema
        self.claims = claims
        layout = try SchemaLayout(schema)
    }

    private mutating func run() throws -> [Schema] {
        try checkNames()
        for (index, claim) in claims.enumerated() {
            for model in claim.schema?.models ?? [] { try assign(model, to: index) }
        }
        for (index, claim) in claims.enumerated() {
            guard let schema = claim.schema else { continue }
            // Models related to the listed ones go into the same store, unless another configuration lists them.
            for entity in try SchemaLayout(schema).entities where owners[ObjectIdentifier(entity.type)] == nil {
                try assign(entity.type, to: index)
            }
        }
        try assignRest()
        try checkLinks()
        return claims.indices.map { index in
            let models = layout.entities.filter { owners[ObjectIdentifier($0.type)] == index }.map(\.type)
            return Schema(models, version: schema.version)
        }
    }

    private func error(_ message: String, closer: SwiftDataError? = nil) -> SwiftDataError {
        .configuration.because(message, closer: closer)
    }

    private func checkNames() throws {
        var known: Set<String> = []
        for claim in claims where !known.insert(claim.name).inserted {
            throw error(
                "Two configurations are called \(claim.name). Give each a name of its own.",
                closer: .duplicateConfiguration)
        }
    }

    private mutating func assign(_ model: any PersistentModel.Type, to index: Int) throws {
        let name = Schema.entityName(for: model)
        guard layout[model] != nil else {
            throw error(
                "The configuration \(claims[index].name) names \(name), which the container's schema lacks.",
                closer: .configurationSchemaNotFoundInContainerSchema)
        }
        if let other = owners[ObjectIdentifier(model)], other != index {
            throw error(
                """
                The configurations \(claims[other].name) and \(claims[index].name) both name \(name), or lead to it. \
                A model has one store.
                """)
        }
        owners[ObjectIdentifier(model)] = index
    }

    private mutating func assignRest() throws {
        let rest = layout.entities.filter { owners[ObjectIdentifier($0.type)] == nil }
        let open = claims.indices.filter { claims[$0].schema == nil }
        guard open.count <= 1 else {
            let names = open.map { claims[$0].name }.joined(separator: ", ")
            throw error("Several configurations have no schema: \(names). Name the models that each of them stores.")
        }
        guard let only = open.first else {
            guard rest.isEmpty else {
                throw error(
                    """
                    No configuration names \(rest.map(\.name).joined(separator: ", ")). Add them to the schema of \
                    one, or add a configuration without a schema.
                    """)
            }
            return
        }
        for entity in rest { owners[ObjectIdentifier(entity.type)] = only }
    }

    private func checkLinks() throws {
        func store(_ entity: EntityLayout) -> String {
            owners[ObjectIdentifier(entity.type)].map { claims[$0].name } ?? ""
        }
        for entity in layout.entities {
            if let above = entity.superlayout, store(above) != store(entity) {
                throw error(
                    """
                    \(entity.name) is in \(store(entity)), and its superclass \(above.name) in \(store(above)). A \
                    hierarchy has one store.
                    """
                )
            }
            for link in entity.slots.compactMap(\.link) where link.source === entity {
                guard store(link.destination) != store(entity) else { continue }
                throw error(
                    """
                    \(entity.name).\(link.name) leads from \(store(entity)) to \(store(link.destination)). \
                    Relationships stay in one store: keep both models there, or refer to the other one by one of its \
                    values.
                    """
                )
            }
        }
    }
}
