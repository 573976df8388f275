import MartletStore

/// The values of a model in attributes that are unique together.
struct UniqueClaim: Hashable {
    let table: String
    let key: [String]
    let values: [Value]

    /// Nil if one of them is NULL, which never violates uniqueness.
    ///
    /// - Parameters:
    ///   - isOld: true for the values before the unsaved changes.
    ///   - plan: knows the rows of new models that a relationship in the key leads to.
    init?(_ backing: ModelBacking, _ key: [String], isOld: Bool = false, plan: SavePlan? = nil) {
        guard let layout = backing.layout else { return nil }
        var values: [Value] = []
        for name in key {
            guard let slot = layout.slot(ofColumn: name) else { return nil }
            let value: Value
            if let plan, case .one(let target) = backing.related[slot] {
                value = plan.reference(to: target)
            } else {
                value = (isOld ? backing.originals[slot] : nil) ?? backing.stored(slot)
            }
            guard !value.isNull else { return nil }
            values.append(value)
        }
        self.init(layout.table.name, key, values)
    }

    /// Nil if a value is NULL.
    init?(_ table: String, _ key: [String], _ values: [Value]) {
        guard !values.contains(where: \.isNull) else { return nil }
        self.table = table
        self.key = key
        self.values = values
    }
}

/// Stored models whose unique values were changed.
struct RekeyedModels {
    /// The models in write order: a model that gives up a value comes before the one that takes it.
    private(set) var ordered: [any PersistentModel] = []
    /// The values that the models give up.
    private(set) var freed: Set<UniqueClaim> = []
    /// The values that the models take, with their row.
    private(set) var taken: [UniqueClaim: Int64] = [:]
    /// Keys of which a model takes a value before another gives it up, which is unavoidable in a cycle.
    private(set) var cycles: [Cycle] = []
    private var members: Set<ObjectIdentifier> = []

    struct Cycle {
        let table: TableLayout
        let key: [String]
    }

    init(_ changed: [any PersistentModel]) {
        var uniqueSlots: [ObjectIdentifier: Set<Int>] = [:]
        let models = changed.filter { model in
            let backing = model._$backing
            guard let layout = backing.layout, !layout.table.uniqueKeys.isEmpty else { return false }
            let id = ObjectIdentifier(layout)
            let slots = uniqueSlots[id] ?? Set(layout.table.uniqueKeys.joined().compactMap(layout.slot(ofColumn:)))
            uniqueSlots[id] = slots
            return backing.originals.keys.contains(where: slots.contains)
        }
        guard !models.isEmpty else { return }
        var holders: [UniqueClaim: any PersistentModel] = [:]
        for model in models {
            members.insert(ObjectIdentifier(model))
            let backing = model._$backing
            for key in backing.layout?.table.uniqueKeys ?? [] {
                let (old, new) = (UniqueClaim(backing, key, isOld: true), UniqueClaim(backing, key))
                guard old != new else { continue }
                if let old {
                    freed.insert(old)
                    holders[old] = model
                }
                if let new { taken[new] = backing.row }
            }
        }
        var visited: Set<ObjectIdentifier> = []
        for model in models { visit(model, holders, &visited) }
        findCycles(holders)
    }

    private mutating func findCycles(_ holders: [UniqueClaim: any PersistentModel]) {
        var written: Set<ObjectIdentifier> = []
        for model in ordered {
            written.insert(ObjectIdentifier(model))
            guard let table = model._$backing.layout?.table else { continue }
            for key in table.uniqueKeys where !cycles.contains(where: { $0.table === table && $0.key == key }) {
                guard let claim = UniqueClaim(model._$backing, key), let holder = holders[claim],
                    !written.contains(ObjectIdentifier(holder))
                else { continue }
                cycles.append(Cycle(table: table, key: key))
            }
        }
    }

    func contains(_ model: any PersistentModel) -> Bool { members.contains(ObjectIdentifier(model)) }

    /// Orders the models whose values a model takes before it.
    private mutating func visit(
        _ model: any PersistentModel, _ holders: [UniqueClaim: any PersistentModel],
        _ visited: inout Set<ObjectIdentifier>
    ) {
        // Iterative, since a chain may be as long as the number of models.
        var waiting: [(model: any PersistentModel, isDue: Bool)] = [(model, false)]
        while let (next, isDue) = waiting.popLast() {
            if isDue {
                ordered.append(next)
                continue
            }
            guard visited.insert(ObjectIdentifier(next)).inserted else { continue }
            waiting.append((next, true))
            for key in next._$backing.layout?.table.uniqueKeys ?? [] {
                guard let claim = UniqueClaim(next._$backing, key), let holder = holders[claim] else { continue }
                waiting.append((holder, false))
            }
        }
    }
}
