import MartletStore

/// A value as the history recorded it.
struct RecordedValue: Sendable {
    let value: Value
    /// The attribute's type, if only its transformer can read the value.
    private let transformed: Schema.AttributeType?

    init(_ value: Value) {
        self.value = value
        transformed = nil
    }

    init(_ value: Value, _ slot: EntityLayout.Slot) {
        self.value = value
        if case .attribute(_, let type) = slot.kind, type.isTransformed {
            transformed = type
        } else {
            transformed = nil
        }
    }

    func load<V>(_ read: (Value) -> V?) -> V? {
        guard let transformed else { return read(value) }
        return transformed.load(value) as? V
    }
}
