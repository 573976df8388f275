/// Holds the first values of a subclass's properties until the superclass's initializer has run.
public final class InitialValues {
    private var assignments: [(ModelBacking, Int) -> Void] = []

    public init() {}

    public func initialize<T: StorableAttribute>(_ slot: Int, _ value: T) { add { $0.initialize($1 + slot, value) } }

    public func initialize<T: RawRepresentable & Codable>(_ slot: Int, _ value: T) where T.RawValue: StorableAttribute {
        add { $0.initialize($1 + slot, value) }
    }

    public func initialize<T: RawRepresentable & Codable>(_ slot: Int, _ value: T?)
    where T.RawValue: StorableAttribute {
        add { $0.initialize($1 + slot, value) }
    }

    @_disfavoredOverload
    public func initialize<T: Codable>(_ slot: Int, _ value: T) { add { $0.initialize($1 + slot, value) } }

    public func initialize<M: PersistentModel>(_ slot: Int, _ value: M) { add { $0.initialize($1 + slot, value) } }
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: M?) { add { $0.initialize($1 + slot, value) } }
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: [M]) { add { $0.initialize($1 + slot, value) } }
    public func initialize<M: PersistentModel>(_ slot: Int, _ value: [M]?) { add { $0.initialize($1 + slot, value) } }

    func add(_ assignment: @escaping (ModelBacking, Int) -> Void) {
        assignments.append(assignment)
    }

    /// Moves the values to the model's backing, once.
    public func move(to backing: ModelBacking, from first: Int) {
        guard !assignments.isEmpty else { return }
        let all = assignments
        assignments = []
        for assignment in all { assignment(backing, first) }
    }
}
