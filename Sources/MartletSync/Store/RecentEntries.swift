import GRDB
import MartletStore

/// The clocks of ``/MartletStore/RecentClocks`` in memory: the newest of rows that have no integer key, and which of those
/// rows are gone.
///
/// Confined to the engine's connection. Made anew after a rollback, with the context that it belongs to.
final class RecentEntries {
    enum Entry {
        case clocks(RowClocks)
        /// The row is gone.
        case gone

        var clocks: RowClocks? { if case .clocks(let clocks) = self { clocks } else { nil } }
    }

    private let coding: ClockCoding
    private var entries: [Int64: [StableID: Entry]] = [:]
    private var count = 0
    private var last: Int64 = 0
    private var folds: Int64
    private let append: PreparedStatement
    private let state: PreparedStatement

    init(_ db: Database, coding: ClockCoding) throws {
        self.coding = coding
        append = try PreparedStatement(
            db,
            "INSERT INTO \(InternalName.recent)(entity, ident, hlc, node, attrs) VALUES (?1, ?2, ?3, ?4, ?5)")
        state = try PreparedStatement(
            db,
            """
            SELECT coalesce((SELECT max(id) FROM \(InternalName.recent)), 0),
            coalesce((SELECT value FROM \(InternalName.meta) WHERE key = '\(RecentClocks.foldCount)'), 0)
            """)
        folds = try state.first { $0.integer(1) } ?? 0
        let read = try PreparedStatement(
            db, "SELECT id, entity, ident, hlc, node, attrs FROM \(InternalName.recent) ORDER BY id")
        while try read.step() {
            last = read.integer(0)
            count += 1
            let entity = read.integer(1)
            entries[entity, default: [:]][StableID(bytes: read.blob(2))] =
                read.isNull(3) ? .gone : .clocks(coding.decode(read, from: 3, of: entity))
        }
    }

    /// False where somebody else has put them away, or has set others.
    func isCurrent() throws -> Bool {
        try state.first { $0.integer(0) == last && $0.integer(1) == folds } ?? false
    }

    /// What is known of the row here.
    func find(_ entity: Int64, _ identity: StableID) -> Entry? { entries[entity]?[identity] }

    /// - Parameter clocks: nil where the row is gone.
    func set(_ db: Database, _ entity: Int64, _ identity: StableID, _ clocks: RowClocks?) throws {
        append.bind(1, entity)
        append.bind(2, blob: identity.bytes)
        if let clocks {
            let inserted = clocks.inserted ?? .zero
            append.bind(3, Int64(bitPattern: inserted.time.rawValue))
            append.bind(4, try coding.nodes.number(db, inserted.node))
        } else {
            append.bindNull(3)
            append.bindNull(4)
        }
        if let clocks, let attributes = try coding.attributes(db, clocks, of: entity) {
            append.bind(5, blob: attributes)
        } else {
            append.bindNull(5)
        }
        try append.run()
        last = db.lastInsertedRowID
        count += 1
        entries[entity, default: [:]][identity] = clocks.map { .clocks($0) } ?? .gone
    }

    /// Puts them away where there are so many.
    func fold(_ db: Database, from limit: Int) throws {
        if count >= limit { try fold(db) }
    }

    func fold(_ db: Database) throws {
        guard count > 0 else { return }
        try RecentClocks.fold(db)
        // Where there were some, there will be as many again.
        for entity in Array(entries.keys) {
            if entries[entity]?.isEmpty ?? true {
                entries[entity] = nil
            } else {
                entries[entity]?.removeAll(keepingCapacity: true)
            }
        }
        (count, last) = (0, 0)
        folds += 1
    }
}
