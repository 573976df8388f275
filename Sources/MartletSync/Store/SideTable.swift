import GRDB
import MartletStore

/// The clocks and stable IDs of an entity's rows, for those who know that nothing special is about them.
///
/// Confined to the engine's connection.
final class SideTable {
    struct Found {
        /// The row's integer key, where the entity has one.
        var row: Int64?
        var clocks: RowClocks
    }

    private let name: String
    private let isKeyedByInteger: Bool
    private unowned let context: EngineContext
    private var findStatement: PreparedStatement?
    private var insertStatement: PreparedStatement?
    private var updateStatement: PreparedStatement?
    private var removeStatement: PreparedStatement?

    init(_ entity: Entity, context: EngineContext) {
        name = InternalName.side(entity.id)
        isKeyedByInteger = entity.isKeyedByInteger
        self.context = context
    }

    /// The entry of the row with this ID. Not for entities with an integer key and declared identity: those have no index
    /// of their IDs here.
    func find(_ db: Database, _ identity: StableID) throws -> Found? {
        let find = try kept(
            &findStatement, db,
            "SELECT hlc, node, attrs\(isKeyedByInteger ? ", row" : "") FROM \(name) WHERE ident = ?1")
        find.bind(1, blob: identity.bytes)
        return try find.first {
            Found(row: isKeyedByInteger ? $0.integer(3) : nil, clocks: context.clocks.decode($0, from: 0))
        }
    }

    /// Adds a row whose columns were all set by one insert.
    ///
    /// - Returns: false where there is one with this ID or this integer key.
    func insert(_ db: Database, row: Int64?, _ identity: StableID, _ stamp: Stamp, node: Int64) throws -> Bool {
        let columns =
            isKeyedByInteger
            ? "(ident, hlc, node, row) VALUES (?1, ?2, ?3, ?4)" : "(ident, hlc, node) VALUES (?1, ?2, ?3)"
        let insert = try kept(&insertStatement, db, "INSERT OR ABORT INTO \(name)\(columns)")
        insert.bind(1, blob: identity.bytes)
        insert.bind(2, Int64(bitPattern: stamp.time.rawValue))
        insert.bind(3, node)
        if isKeyedByInteger { insert.bind(4, optional: row) }
        return try insert.runUnlessConstrained()
    }

    /// Sets what an update changes: the stamps of single columns.
    func update(_ db: Database, row: Int64?, _ identity: StableID, _ attributes: [UInt8]?) throws {
        let update = try kept(
            &updateStatement, db, "UPDATE \(name) SET attrs = ?2 WHERE \(isKeyedByInteger ? "row" : "ident") = ?1")
        bind(update, row, identity)
        if let attributes { update.bind(2, blob: attributes) } else { update.bindNull(2) }
        try update.run()
    }

    func remove(_ db: Database, row: Int64?, _ identity: StableID) throws {
        let remove = try kept(
            &removeStatement, db, "DELETE FROM \(name) WHERE \(isKeyedByInteger ? "row" : "ident") = ?1")
        bind(remove, row, identity)
        try remove.run()
    }

    private func bind(_ statement: PreparedStatement, _ row: Int64?, _ identity: StableID) {
        if let row, isKeyedByInteger { statement.bind(1, row) } else { statement.bind(1, blob: identity.bytes) }
    }
}

/// The statement, compiled the first time. Its text, which is made from names, is not even put together after that.
func kept(_ statement: inout PreparedStatement?, _ db: Database, _ sql: @autoclosure () -> String) throws
    -> PreparedStatement
{
    if let statement { return statement }
    let made = try PreparedStatement(db, sql())
    statement = made
    return made
}
