import Foundation
import GRDB

/// Registers the existing rows of a table when it is attached: each gets an entry in the side table of stable IDs, with
/// a clock that is older than every change.
enum ExistingRowClocks {
    static func adopt(
        _ db: Database, _ entities: [Entity], catalog: Catalog, seed: UUID?, _ tally: RowTally?,
        report: inout AttachReport
    ) throws {
        let ids = try seed.map(HiddenIDRule.init(seed:)) ?? HiddenIDRule.load(db)
        try RecentClocks.flush(db)
        for entity in entities { try StoreSchema.createSide(db, entity, indexesIDs: ids.existingRowsAscend) }
        let rows = ExistingRows(db: db, catalog: catalog, tally: tally)
        // Tables with an integer key first: the others may refer to them.
        for entity in entities where entity.isKeyedByInteger {
            if entity.identity == .hidden, let tally { try rows.begin(tally, .naming, entity) }
            report.existingRowCount += try adoptKeyed(db, entity, ids, tally)
        }
        let resolver = IdentityResolver(catalog: catalog, statements: StatementCache())
        for entity in entities where entity.isKeyedByInteger && entity.identity != .hidden {
            if let tally { try rows.begin(tally, .naming, entity) }
            try keepIdentities(db, entity, resolver, tally)
        }
        for entity in entities where !entity.isKeyedByInteger {
            if let tally { try rows.begin(tally, .naming, entity) }
            report.existingRowCount += try adoptNatural(db, entity, resolver, tally, &report)
        }
    }

    private static func adoptKeyed(_ db: Database, _ entity: Entity, _ ids: HiddenIDRule, _ tally: RowTally?) throws
        -> Int
    {
        let key = entity.integerKey?.quotedName ?? "rowid"
        let table = entity.name.storeTable
        let side = InternalName.side(entity.id)
        guard entity.identity == .hidden else {
            try db.execute(sql: "INSERT OR REPLACE INTO \(side)(row, hlc, node) SELECT \(key), 0, 0 FROM \(table)")
            return db.changesCount
        }
        let identity = ids.existing(entity.name)
        let read = try PreparedStatement(db, "SELECT \(key) FROM \(table) ORDER BY \(key)")
        let insert = try PreparedStatement(
            db, "INSERT OR REPLACE INTO \(side)(row, ident, hlc, node) VALUES (?1, ?2, 0, 0)")
        var count = 0
        while try read.step() {
            tally?.count()
            let row = read.integer(0)
            insert.bind(1, row)
            insert.bind(2, blob: identity(row).bytes)
            try insert.run()
            count += 1
        }
        // IDs in random order are sorted once. Each of them would write to another page of an index that is there.
        try StoreSchema.createSide(db, entity)
        return count
    }

    /// Stores the IDs of rows with an integer key, so that the audit can tell which ones are gone.
    private static func keepIdentities(
        _ db: Database, _ entity: Entity, _ resolver: IdentityResolver, _ tally: RowTally?
    ) throws {
        guard let key = entity.integerKey?.quotedName else { return }
        let columns = entity.identityColumns
        let read = try PreparedStatement(
            db,
            "SELECT \(key), \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.storeTable)")
        let save = try PreparedStatement(db, "UPDATE \(InternalName.side(entity.id)) SET ident = ?2 WHERE row = ?1")
        while try read.step() {
            tally?.count()
            let values = columns.indices.map { read.value(Int32($0 + 1)) }
            guard let identity = try resolver.identity(db, entity, localValues: values) else { continue }
            save.bind(1, read.integer(0))
            save.bind(2, blob: identity.bytes)
            try save.run()
        }
    }

    private static func adoptNatural(
        _ db: Database, _ entity: Entity, _ resolver: IdentityResolver, _ tally: RowTally?,
        _ report: inout AttachReport
    ) throws -> Int {
        let columns = entity.identityColumns
        let read = try PreparedStatement(
            db, "SELECT \(columns.map(\.name.quotedName).joined(separator: ", ")) FROM \(entity.name.storeTable)")
        let insert = try PreparedStatement(
            db, "INSERT OR REPLACE INTO \(InternalName.side(entity.id))(ident, hlc, node) VALUES (?1, 0, 0)")
        var count = 0
        var dangling = 0
        while try read.step() {
            tally?.count()
            guard
                let identity = try resolver.identity(
                    db, entity, localValues: columns.indices.map { read.value(Int32($0)) })
            else {
                dangling += 1
                continue
            }
            insert.bind(1, blob: identity.bytes)
            try insert.run()
            count += 1
        }
        if dangling > 0 {
            report.warnings.append(
                "Table \(entity.name): \(dangling) rows have a NULL in their identity, or refer to missing rows. They "
                    + "are not synced until you repair them.")
        }
        return count
    }
}
