import GRDB
import MartletStore

/// Attaches the tables of a schema to the history.
struct TableTracker {
    private let alteration: Alteration
    private let layout: SchemaLayout
    private let lineage: SchemaLineage?

    /// - Parameter lineage: nil during a migration from one version to another, whose renames the alteration sees by
    ///   itself.
    init(_ alteration: Alteration, _ layout: SchemaLayout, _ lineage: SchemaLineage? = nil) {
        self.alteration = alteration
        self.layout = layout
        self.lineage = lineage
    }

    /// Attaches each table on its own, since their identities differ. Tables that are tracked already take over the new
    /// settings.
    func track() throws {
        for table in layout.tables {
            var request = AttachRequest()
            request.identities = [table.name: table.identity]
            request.keepsOldValues = table.keepsOldValues
            try attach(table.name, request)
        }
        for join in layout.joins { try attach(join.name, AttachRequest()) }
    }

    /// Attaches the tables of earlier versions, in a store that starts with this one.
    func trackLeftOut() throws {
        for table in lineage?.stored.leftOut ?? [] {
            var request = AttachRequest()
            request.identities = [table.name: table.identity]
            request.keepsOldValues = table.hasType
            try attach(table.name, request)
        }
        for join in lineage?.stored.leftOutJoins ?? [] { try attach(join.name, AttachRequest()) }
    }

    private func attach(_ table: String, _ request: AttachRequest) throws {
        // The models of the other tables can still be used, and these be read.
        guard try !alteration.isUnwritable(table) else { return }
        var request = request
        request.tables = [table]
        request.logsExistingRows = true
        if let names = lineage?.formerTableNames[table] { request.formerNames = [table: names] }
        if let names = lineage?.formerColumnNames[table] {
            request.formerColumnNames = [table: names.filter { !$0.value.isEmpty }]
        }
        try alteration.attach(request)
    }
}

extension TableLayout {
    /// True if a tombstone records values: the preserved attributes, and the row's class in a hierarchy.
    var keepsOldValues: Bool { preservesValues || hasTypeColumn }
}
