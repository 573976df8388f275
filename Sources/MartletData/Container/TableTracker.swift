import GRDB
import MartletStore

/// Has the history record the tables of a schema.
struct TableTracker {
    private let alteration: Alteration
    private let layout: SchemaLayout
    private let heritage: SchemaHeritage?

    /// - Parameter heritage: absent on the way from one version to another, whose changes are seen by themselves.
    init(_ alteration: Alteration, _ layout: SchemaLayout, _ heritage: SchemaHeritage? = nil) {
        self.alteration = alteration
        self.layout = layout
        self.heritage = heritage
    }

    /// Each by itself, as they are known in different ways. Those that are tracked already follow what is said of them
    /// now.
    func track() throws {
        for table in layout.tables {
            var request = AttachRequest()
            request.identities = [table.name: table.identity]
            request.keepsOldValues = table.keepsOldValues
            try attach(table.name, request)
        }
        for join in layout.joins { try attach(join.name, AttachRequest()) }
    }

    /// Those of earlier versions, of a store that begins with this one.
    func trackLeftOut() throws {
        for table in heritage?.stored.leftOut ?? [] {
            var request = AttachRequest()
            request.identities = [table.name: table.identity]
            request.keepsOldValues = table.hasType
            try attach(table.name, request)
        }
        for join in heritage?.stored.leftOutJoins ?? [] { try attach(join.name, AttachRequest()) }
    }

    private func attach(_ table: String, _ request: AttachRequest) throws {
        var request = request
        request.tables = [table]
        request.logsExistingRows = true
        if let names = heritage?.formerTableNames[table] { request.formerNames = [table: names] }
        if let names = heritage?.formerColumnNames[table] {
            request.formerColumnNames = [table: names.filter { !$0.value.isEmpty }]
        }
        try alteration.attach(request)
    }
}

extension TableLayout {
    /// A tombstone has the preserved attributes, and which model of a hierarchy it was.
    var keepsOldValues: Bool { preservesValues || hasTypeColumn }
}
