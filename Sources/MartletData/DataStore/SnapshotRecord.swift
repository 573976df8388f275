import MartletStore
import Synchronization

/// A model's values by property name, and the identifiers of its relationships' targets.
struct SnapshotRecord: Sendable {
    var identifier: PersistentIdentifier
    var values: [String: Value] = [:]
    var links: [String: [PersistentIdentifier]] = [:]
}

/// The entities by which snapshots are encoded and decoded: a snapshot only contains its entity's name.
enum SnapshotEntities {
    /// The schema of the store that is being called.
    @TaskLocal static var current: SchemaLayout?
    /// The layout of the newest container that has a model of that name, for snapshots that are coded at other times.
    private static let known = Mutex<[String: SchemaLayout]>([:])

    static func note(_ layout: SchemaLayout) {
        known.withLock { known in
            for entity in layout.entities { known[entity.name] = layout }
        }
    }

    static func entity(named name: String) -> EntityLayout? {
        if let entity = current?[named: name] { return entity }
        return known.withLock { $0[name] }?[named: name]
    }
}
