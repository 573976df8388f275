/// Finds the other end of each relationship, and decides where the relationship is stored.
struct RelationshipLinker {
    let layout: SchemaLayout
    private var oneSided: Set<ObjectIdentifier> = []
    private(set) var joins: [(name: String, first: Link, second: Link)] = []

    init(layout: SchemaLayout) {
        self.layout = layout
    }

    private func declared(_ entity: EntityLayout) -> [Link] {
        entity.slots.compactMap(\.link).filter { $0.source === entity }
    }

    mutating func link() throws {
        let links = layout.entities.flatMap(declared)
        for link in links {
            guard let keyPath = link.options.inverseKeyPath else { continue }
            let other = link.destination.family.lazy.compactMap { entity in
                entity.slot(keyPath: keyPath)?.link
            }.first
            guard let other else {
                throw SwiftDataError.invalidSchema.because(
                    "\(link.source.name).\(link.name): the inverse is not a relationship of \(link.destination.name).")
            }
            // Several relationships may declare the same inverse, which declares none itself. It is the inverse of the
            // first; the others have no inverse.
            if other.inverse != nil, other.inverse !== link, other.options.inverseKeyPath == nil {
                oneSided.insert(ObjectIdentifier(link))
            } else {
                try connect(link, other)
            }
        }
        let open = links.filter { $0.inverse == nil && !oneSided.contains(ObjectIdentifier($0)) }
        for link in open where link.inverse == nil {
            let candidates = open.filter { $0.inverse == nil && Self.mayBeInverse(link, $0) }
            let rivals = open.filter {
                $0.inverse == nil && $0.source === link.source && Self.mayBeInverse(link, $0, sameSource: true)
            }
            if let only = candidates.first, candidates.count == 1, rivals.count == 1, only !== link {
                try connect(link, only)
            }
        }
        for link in links { try place(link) }
    }

    private static func mayBeInverse(_ a: Link, _ b: Link, sameSource: Bool = false) -> Bool {
        guard !sameSource else { return b.destination === a.destination }
        return b.source === a.destination && b.destination === a.source && a !== b
    }

    private func connect(_ a: Link, _ b: Link) throws {
        if a.inverse === b && b.inverse === a { return }
        guard a.inverse == nil, b.inverse == nil else {
            throw SwiftDataError.invalidSchema.because(
                """
                \(a.source.name).\(a.name) and \(b.source.name).\(b.name) can't be each other's inverse: one of them \
                has another.
                """)
        }
        a.inverse = b
        b.inverse = a
    }

    private mutating func place(_ link: Link) throws {
        guard !layout.keepsLists else {
            if link.isToMany { link.storage = .list } else { try addColumn(link, to: link.source) }
            return
        }
        switch (link.isToMany, link.inverse) {
        case (false, let inverse):
            // Of two to-one ends, the one whose name sorts first has the column.
            if let inverse, !inverse.isToMany, inverse !== link, Self.key(inverse) < Self.key(link) {
                link.storage = .inverse
            } else {
                try addColumn(link, to: link.source)
            }
        case (true, nil): try addHiddenEnd(of: link)
        case (true, let inverse?):
            guard inverse.isToMany else {
                link.storage = .inverse
                return
            }
            guard Self.key(link) < Self.key(inverse) || link === inverse else { return }
            let name = "\(link.source.name)_\(link.name)"
            let own = link.source.name
            let other = link.destination.name == own ? "\(own)_\(link.name)" : link.destination.name
            link.storage = .join(table: name, own: own, other: other)
            inverse.storage = .join(table: name, own: other, other: own)
            joins.append((name, link, inverse))
        }
    }

    private static func key(_ link: Link) -> String { "\(link.source.name).\(link.name)" }

    private func addColumn(_ link: Link, to entity: EntityLayout) throws {
        let column = try layout.addColumn(
            entity, link.name,
            .init(
                name: "", declaration: "INTEGER", originalName: link.options.formerName,
                reference: link.destination.table.name))
        for member in entity.family {
            guard let slot = member.slots.firstIndex(where: { $0.link === link }) else { continue }
            member.slots[slot].column = column
        }
    }

    /// A to-many relationship without an inverse is stored in a column of the other table too.
    private func addHiddenEnd(of link: Link) throws {
        let name = "\(link.source.name)_\(link.name)"
        let hidden = Link(
            name: name, isToMany: false, isOptional: true,
            options: .init(
                deleteRule: .noAction, originalName: link.options.formerName.map { "\(link.source.name)_\($0)" }),
            source: link.destination, destination: link.source)
        hidden.inverse = link
        link.inverse = hidden
        link.storage = .inverse
        for member in link.destination.family {
            member.slots.append(.init(name: name, kind: .relationship(hidden)))
        }
        try addColumn(hidden, to: link.destination)
    }
}

extension EntityLayout {
    fileprivate func slot(keyPath: AnyKeyPath) -> Slot? {
        slots.first { $0.keyPath == keyPath }
    }
}
