/// A set of models in insertion order.
struct ModelSet {
    private var members: [any PersistentModel] = []
    private var places: [ObjectIdentifier: Int] = [:]

    var isEmpty: Bool { places.isEmpty }

    var all: [any PersistentModel] {
        // Removed models are still in the list.
        places.count == members.count
            ? members : members.enumerated().filter { places[ObjectIdentifier($1)] == $0 }.map(\.element)
    }

    func contains(_ model: any PersistentModel) -> Bool { places[ObjectIdentifier(model)] != nil }

    mutating func add(_ model: any PersistentModel) {
        guard !contains(model) else { return }
        places[ObjectIdentifier(model)] = members.count
        members.append(model)
    }

    mutating func remove(_ model: any PersistentModel) {
        guard places.removeValue(forKey: ObjectIdentifier(model)) != nil else { return }
        // Otherwise a list of removed models would keep them alive.
        if members.count > 2 * places.count + 16 {
            members = all
            places = Dictionary(uniqueKeysWithValues: members.enumerated().map { (ObjectIdentifier($1), $0) })
        }
    }

    mutating func removeAll(where isGoing: (any PersistentModel) -> Bool) {
        for model in all where isGoing(model) { remove(model) }
    }

    mutating func removeAll() {
        members.removeAll()
        places.removeAll()
    }
}
