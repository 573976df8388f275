import GRDB
import MartletStore
import MartletSync

extension Simulation {
    func perform(_ action: Action, _ node: SimulatedNode) throws {
        switch action {
        case .write: try write(node, isForeign: false)
        case .foreignWrite: try write(node, isForeign: true)
        case .transfer:
            try write(node, isForeign: plan.faults.contains(.foreign) && random.once(in: 3), isTransfer: true)
        case .publish: try publish(node)
        case .deliver: deliver(node)
        case .consume: try consume(node)
        case .exchange:
            try publish(node)
            for _ in 0..<3 { try consume(node) }
        case .readHistory: try readHistory(node)
        case .crash:
            note("crashes")
            node.crash()
        case .dieAtBus:
            node.link.callsUntilDeath = random.below(8)
            note("will die at a call to the bus")
            try perform(random.pick([.publish, .publish, .consume, .exchange]), node)
        case .dieAtWrite:
            let count = random.below(random.once(in: 3) ? 60 : 12)
            note("will die after \(count) writes to its disk")
            if random.once(in: 6) { node.crash() }
            Machine.die(afterWrites: count)
            _ = try start(node)
            try perform(random.pick([.write, .transfer, .publish, .consume, .exchange]), node)
        case .loseAcknowledgements:
            guard try isSure(node) else { return }
            _ = node.open?.publisher.step()
            if random.once(in: 2) { node.link.producer?.store(1 + random.below(3)) }
            node.link.producer?.loseAnswers()
            note("loses its acknowledgements")
        case .setClock: setClock(node)
        case .slow:
            node.idleSteps = 2 + random.below(10)
            note("is slow from now on")
        case .cut:
            node.link.isCut = true
            note("has no network")
        case .repair:
            node.link.isCut = false
            note("has network")
        case .upgrade: try upgrade(node)
        case .snapshot: try snapshot(node)
        case .announceClock: try announceClock(node)
        case .fillDisk:
            node.room = random.pick([0, 0, 5000, 30_000])
            Machine.room = node.room
            note("has \(node.room ?? 0) bytes left on its disk")
        case .freeDisk: break
        case .backUp: try backUp(node)
        case .restore: try restore(node)
        case .copy: try copy(node)
        case .fork: try takeNewID(node)
        case .misdate: try misdate(node)
        case .restamp: try restamp(node)
        case .duplicate, .prune, .wipe, .recreate, .forget, .corrupt, .shrinkTopic, .loseSnapshots:
            try damageTopic(action, node)
        }
    }

    // MARK: Writing

    func write(_ node: SimulatedNode, isForeign: Bool, isTransfer: Bool = false) throws {
        let open = try start(node)
        let keepsReferences = !isForeign || random.once(in: 2)
        let rebuilds =
            schema.isGenerated && isForeign && !keepsReferences && options.features.contains(.rebuilds)
            && (node.copiedTable != nil || Chance(step.seed).once(in: 4, "rebuilds"))
        let work = SimulatedNode.LocalWrite(
            id: "\(node.prefix)\(node.written.count)-\(random.below(1_000_000))",
            author: isForeign ? nil : "author \(random.below(3))")
        let tableWork = try isForeign && !rebuilds ? tableWork(node, keepsReferences: keepsReferences) : nil
        try prepare(tableWork, node)
        var rebuilt: RebuiltRows?
        var done: [String] = []
        let body = { [self] (db: Database) throws in
            try db.execute(sql: "INSERT INTO sim_write(id) VALUES (?)", arguments: [work.id])
            let wanted =
                isTransfer ? try Transfers.statements(node.life == 0 ? node.name : node.prefix, &random, db) : []
            for sql in wanted {
                try PreparedStatement(db, sql).run()
                done.append(sql)
            }
            if rebuilds { try rebuild(node, db, &done) }
            switch tableWork {
            case .rebuild:
                rebuilt = try rebuildBesideBackup(node, db, &done)
                return
            case .backUp: try backUpTable(node, db, &done)
            case .recreate: try continueRecreation(db, &done)
            case .trigger: try createTrigger(node, db, &done)
            case .drop, nil: break
            }
            guard !isTransfer || random.once(in: 4) else { return }
            guard !schema.isGenerated else {
                try collide(node, db, keepsReferences: keepsReferences, &done)
                if tableWork == .drop { try dropTable(node, db, &done) }
                return
            }
            var writer = StatementWriter(
                random: random, db: db, shapes: try shapes(of: node, db), keepsReferences: keepsReferences)
            for _ in 0...random.below(4) {
                guard let sql = try writer.statement() else { continue }
                do {
                    try PreparedStatement(db, sql).run()
                    done.append(sql)
                } catch  where isRefusal(error) {}
            }
        }
        node.uncertain = work
        do {
            if isForeign {
                // Set outside of a transaction: SQLite ignores `foreign_keys` inside one. Without recursive triggers, a
                // displaced row leaves behind what triggers derived from it, whoever writes.
                let isRecursive = schema.isGenerated && (random.once(in: 2) || schema.keepsDerived)
                try open.other.writeWithoutTransaction {
                    try $0.execute(sql: "PRAGMA foreign_keys = \(keepsReferences ? 1 : 0)")
                    if schema.isGenerated { try $0.execute(sql: "PRAGMA recursive_triggers = \(isRecursive ? 1 : 0)") }
                    try $0.execute(sql: "PRAGMA legacy_alter_table = \(rebuilds || tableWork != nil ? 1 : 0)")
                }
                try open.other.write(body)
            } else {
                try open.store.write(author: work.author, body)
            }
            node.written.append(work)
            node.uncertain = nil
        } catch  where (isRefusal(error) || Machine.isFull(error) || error is RolledBack) && !Machine.hasDied {
            done.append(error is RolledBack ? "ROLLBACK" : "nothing: \(error)")
            node.uncertain = nil
        }
        let who = isForeign ? keepsReferences ? "another program" : "another program, without foreign keys" : "writes"
        note("\(who) \(work.id): \(done.joined(separator: "; "))")
        if let rebuilt { try check(rebuilt, node) }
    }

    /// Thrown to roll back a program's transaction.
    private struct RolledBack: Error {}

    /// Rebuilds a table with all of its rows, with some of them, or with other values. Sometimes the copy is made in
    /// one transaction, and renamed in a later one.
    private func rebuild(_ node: SimulatedNode, _ db: Database, _ done: inout [String]) throws {
        let number = step.number * 100 + 50
        let chance = Chance(step.seed)
        guard !options.withoutStatements.contains(number) else { return }
        if let copied = node.copiedTable {
            node.copiedTable = nil
            guard try copied.version == node.version && TableRebuilder.hasCopy(db) else {
                return try db.execute(sql: TableRebuilder.dropCopy)
            }
            statements.append(number)
            return try run(copied.rest, db, &done)
        }
        guard let table = chance.pick(try profiles(of: node, db), { "rebuilt " + $0.name }) else { return }
        statements.append(number)
        let way = chance.pick(TableRebuilder.Way.allCases) { "\($0)" } ?? .newName
        // Neither rows derived from the table's rows nor rows that refer to missing ones would be updated.
        let hasTriggers = try TableRebuilder.hasTriggers(db, table)
        let isAlone = !table.isReferenced && !hasTriggers
        let isSmaller = isAlone && chance.once(in: 3, "leaves out")
        let free = table.columns.filter { column in
            !column.isKey && !column.isNarrow && !table.references.contains { $0.columns.contains(column.name) }
        }
        let column = !hasTriggers && chance.once(in: 2, "changes") ? chance.pick(free) { "changed " + $0.name } : nil
        let renumbered = isAlone && chance.once(in: 3, "numbers anew") ? TableRebuilder.renumbered(table, chance) : nil
        let wanted = try TableRebuilder(db: db, table: table).statements(
            way, keeping: isSmaller ? "\(table.rowKey[0]) > \(chance.below(6, "from"))" : "1",
            changing: renumbered
                ?? column.map { ($0.name, ValuePool.isText($0.type) ? "\($0.quoted) || '+'" : "\($0.quoted) + 1") })
        try db.execute(sql: TableRebuilder.dropCopy)
        guard isAlone, TableRebuilder.beginsWithCopy(wanted), chance.once(in: 2, "apart") else {
            return try run(wanted, db, &done)
        }
        try run(Array(wanted.prefix(2)), db, &done)
        if try TableRebuilder.hasCopy(db) { node.copiedTable = (node.version, Array(wanted.dropFirst(2))) }
    }

    /// Runs all of the statements, or none.
    func run(_ wanted: [String], _ db: Database, _ done: inout [String]) throws {
        try db.execute(sql: "SAVEPOINT rebuild")
        do {
            for sql in wanted {
                try PreparedStatement(db, sql).run()
                done.append(sql)
            }
        } catch  where isRefusal(error) {
            done.append("[refused]")
            try db.execute(sql: "ROLLBACK TO rebuild")
        }
        try db.execute(sql: "RELEASE rebuild")
    }

    /// Writes statements that collide with those of other nodes.
    private func collide(
        _ node: SimulatedNode, _ db: Database, keepsReferences: Bool, _ done: inout [String]
    ) throws {
        let profiles = try profiles(of: node, db)
        let before = try CapturedDeletes(db, profiles)
        var writer = try CollidingWriter(db, profiles, options.features, keepsReferences: keepsReferences)
        let broken = keepsReferences ? try brokenReferences(db) : [:]
        for place in 0...random.below(5) { try writeStatement(at: place, &writer, node, db, &done) }
        do {
            try before.check(db)
        } catch {
            note("\(node.name)  writes \(done.joined(separator: "; "))")
            throw error
        }
        if options.features.contains(.rollbacks), random.once(in: 15) { throw RolledBack() }
        // SQLite misses some broken references although it checks them: an upsert that sets the key of a new row, or a
        // row whose key repairs as many references as it breaks.
        if keepsReferences, try brokenReferences(db).contains(where: { $0.value > broken[$0.key] ?? 0 }) {
            throw RolledBack()
        }
    }

    /// Writes the statement for a place in the step, unless it is left out.
    func writeStatement(
        at place: Int, _ writer: inout CollidingWriter, _ node: SimulatedNode, _ db: Database, _ done: inout [String]
    ) throws {
        let number = step.number * 100 + place
        guard !options.withoutStatements.contains(number) else { return }
        let wanted = try writer.statements(seed: step.seed &+ UInt64(place) &* 0x9e37_79b9)
        guard !wanted.isEmpty else { return }
        statements.append(number)
        for sql in wanted {
            do {
                try PreparedStatement(db, sql).run()
                done.append(sql)
            } catch  where isRefusal(error) {
                // `OR ROLLBACK` ends the transaction, so the rest can't continue.
                done.append("[refused] " + sql)
                guard db.isInsideTransaction else { throw error }
            } catch {
                note("\(node.name)  writes \((done + [sql]).joined(separator: "; "))")
                throw error
            }
        }
    }

    /// The number of rows that break each foreign key, by its table and number.
    private func brokenReferences(_ db: Database) throws -> [String: Int] {
        try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").reduce(into: [:]) { counts, row in
            counts["\(row["table"] as String)/\(row["fkid"] as Int64)", default: 0] += 1
        }
    }

    private func isRefusal(_ error: any Error) -> Bool {
        if let error = error as? DatabaseError {
            // Errors of generated statements: a value of another type, a sum that is too large, an upsert without a
            // matching index.
            return error.resultCode == .SQLITE_CONSTRAINT
                || (schema.isGenerated && error.resultCode == .SQLITE_MISMATCH)
                || (schema.isGenerated && Self.refusals.contains { error.message?.contains($0) ?? false })
        }
        if let error = error as? StoreError {
            let code = (error.sqliteCode ?? 0) & 0xff
            return code == 19
                || (schema.isGenerated && (code == 20 || Self.refusals.contains(where: error.message.contains)))
        }
        return false
    }

    private static let refusals = [
        "integer overflow", "ON CONFLICT clause does not match", "too many levels of trigger recursion",
    ]

    private func upgrade(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard node.version < schema.upgrades.count else { return }
        if options.features.contains(.recreations), try open.other.read(TableRecreation.isUnderWay) {
            return note("can't upgrade while a table is missing")
        }
        let upgrade = schema.upgrades[node.version]
        if upgrade.attaches {
            _ = try open.store.alter(sql: upgrade.sql, attaching: schema.request)
        } else {
            try open.store.alter(sql: upgrade.sql)
        }
        node.version += 1
        note("upgrades: \(upgrade.sql)")
    }

    func upgradeFully(_ node: SimulatedNode) throws {
        while plan.faults.contains(.upgrade), node.version < schema.upgrades.count { try upgrade(node) }
    }

    private func setClock(_ node: SimulatedNode) {
        let now = time.milliseconds
        switch random.below(7) {
        case 0: node.clock.set(Int64(random.below(5000)) - 2500)
        case 1: node.clock.set(now, percent: 300)
        case 2: node.clock.set(now + 86_400_000)
        case 3: node.clock.set(now - 86_400_000)
        case 4: node.clock.set(now + Int64(random.below(400_000)))
        case 5: node.clock.set(now - Int64(random.below(10_000)))
        default: node.clock.correct()
        }
        note("sets its clock to \(node.clock.milliseconds), which is \(node.clock.milliseconds - now) ms off")
    }

    // MARK: Publishing and consuming

    func publish(_ node: SimulatedNode) throws {
        let open = try start(node)
        guard try isSure(node) else { return }
        let before = topic.published.payloads.count
        open.publisher.step()
        let isDelayed = plan.faults.contains(.delay) && random.once(in: 2)
        if !isDelayed { deliver(node, all: true) }
        note(
            "publishes: \(topic.published.payloads.count - before) new" + (isDelayed ? ", which wait" : "")
                + problem(open.publisher.currentProgress.problem))
    }

    private func problem(_ text: String?) -> String { text.map { " (\($0))" } ?? "" }

    private func deliver(_ node: SimulatedNode, all: Bool = false) {
        guard let producer = node.link.producer else { return }
        let count = all ? .max : random.below(5)
        producer.store(count)
        if all || random.once(in: 2) { producer.answer() }
        if !all { note("the broker accepts at most \(count)") }
    }

    func consume(_ node: SimulatedNode) throws {
        let open = try start(node)
        if plan.faults.contains(.delay), random.once(in: 4) { return note("hears nothing") }
        guard try isSure(node) else { return }
        guard let report = open.consumer.step(timeout: .zero) else {
            if open.consumer.lastFailure?.code == .copied {
                note("meets another store with its node ID, and stops")
                return node.crash()
            }
            return note("can't read\(problem(open.consumer.currentProgress.problem))")
        }
        try checkUnderstood(report, node)
        var parts: [String] = []
        for (name, count) in [
            ("applies", report.applied), ("duplicates", report.duplicates), ("own", report.own),
            ("chunks", report.chunks), ("parks", report.deferred), ("quarantines", report.quarantined),
            ("gaps", report.gaps.count), ("rewinds", report.rewound.count),
        ] where count > 0 {
            parts.append("\(name) \(count)")
        }
        note("reads: \(parts.isEmpty ? "nothing" : parts.joined(separator: ", "))")
    }
}
